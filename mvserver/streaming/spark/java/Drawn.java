package mvserver;

import java.time.Instant;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Values that are drawn anew at each call. Spark's own present time is one for a whole batch, and for all the life of a
 * query of the live lane; its own chance repeats itself where a plan is used again.
 */
public final class Drawn {
  private Drawn() {}

  /** The present time in microseconds since 1970. */
  public static long moment() {
    Instant now = Instant.now();
    return now.getEpochSecond() * 1000000L + now.getNano() / 1000;
  }

  /** From 0 to 1, without 1. */
  public static double fraction() {
    return ThreadLocalRandom.current().nextDouble();
  }

  /** Any integer. */
  public static int integer() {
    return ThreadLocalRandom.current().nextInt();
  }

  /** Of version 4, which nobody can guess. */
  public static String uuid() {
    return UUID.randomUUID().toString();
  }
}
