"""Jars for tests, compiled by Janino, which Spark brings: no JDK has to be there."""

from __future__ import annotations

import io
import zipfile
from functools import cache

SOURCE = """
package shop;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
public class All {
  public static class Shout { public String evaluate(String word) { return word.toUpperCase() + "!"; } }
  public static class Twice { public static long evaluate(long n) { return Math.multiplyExact(n, 2L); } }
  public static class Inherits extends Shout { }
  public static class Flink { public Integer eval(Integer a, Integer b) { return a == null ? b : a; } }
  public static class Answer { public int evaluate() { return 42; } }
  public static class Counts {
    private int calls = 0;
    public Integer evaluate(String word) { calls = calls + 1; return Integer.valueOf(calls > 0 ? word.length() : 0); }
  }
  public static class Price { public BigDecimal evaluate(BigDecimal p) { return p.multiply(new BigDecimal("1.195")); } }
  public static class Middle {
    public Long evaluate(List values) {
      List sorted = new ArrayList();
      for (int i = 0; i < values.size(); i++) { if (values.get(i) != null) { sorted.add(values.get(i)); } }
      Collections.sort(sorted);
      return sorted.isEmpty() ? null : (Long) sorted.get(sorted.size() / 2);
    }
  }
  public static class Letters {
    public List evaluate(String word) {
      List found = new ArrayList();
      for (int i = 0; i < word.length(); i++) { found.add(word.substring(i, i + 1)); }
      return found;
    }
  }
  public static class Days { public LocalDate evaluate(LocalDate day) { return day.plusDays(1L); } }
  public static class Clock { public LocalTime evaluate(LocalTime time) { return time.plusHours(1L); } }
  public static class Moment { public Instant evaluate(Instant at) { return at.plusMillis(1L); } }
  public static class Local { public LocalDateTime evaluate(LocalDateTime at) { return at.plusYears(1L); } }
  public static class Bytes { public byte[] evaluate(byte[] given) { return new byte[] {given[0], (byte) 0}; } }
  public static class Flag { public Boolean evaluate(Boolean b) { return Boolean.valueOf(!b.booleanValue()); } }
  public static class Half { public Double evaluate(Float f) { return Double.valueOf(f.doubleValue() / 2); } }
  public static class Small { public Short evaluate(Byte b) { return Short.valueOf((short) (b.byteValue() * 2)); } }
  public static class Raises {
    public String evaluate(String word) {
      if (word.equals("bad")) { throw new IllegalStateException("a bad\\n word"); }
      return word;
    }
  }
  public static class Deep { public String evaluate(String word) { return evaluate(word + "x"); } }
  public static class Spark {
    public String evaluate(String name) throws Exception { return Class.forName(name).getName(); }
  }
  public static class Nul { public String evaluate(String word) { return word + "\\000"; } }
  public static class Great { public BigDecimal evaluate(BigDecimal p) { return p.movePointRight(9); } }
  public static class Mixed { public List evaluate(String w) { return Collections.singletonList(Integer.valueOf(1)); } }
  static class Hidden { public String evaluate(String word) { return word; } }
  public static class Private { private Private() {} public String evaluate(String word) { return word; } }
  public static class Two {
    public String evaluate(String word) { return word; }
    public String eval(String word) { return word; }
  }
  public static class Version { public String evaluate(String word) { return word + VERSION; } }
  static final String VERSION = "@version";
}
"""


def jar(version: str = "1") -> bytes:
    """With all the classes above."""
    return compiled(SOURCE.replace("@version", version))


@cache
def compiled(source: str, against: tuple[str, ...] = ()) -> bytes:
    """A jar with the classes of a source, which may use those of other jars."""
    from pyspark.java_gateway import launch_gateway

    gateway = launch_gateway()
    try:
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        if against:
            urls = gateway.new_array(gateway.jvm.java.net.URL, len(against))
            for i, path in enumerate(against):
                urls[i] = gateway.jvm.java.io.File(path).toURI().toURL()
            compiler.setParentClassLoader(gateway.jvm.java.net.URLClassLoader(urls))
        compiler.cook(source)
        codes = compiler.getBytecodes()
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as written:
            for name in codes:
                written.writestr(f"{str(name).replace('.', '/')}.class", bytes(codes[name]))
        return content.getvalue()
    finally:
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            process.wait(60)
