package mvserver;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.shaded.com.google.re2j.Matcher;
import org.apache.hadoop.shaded.com.google.re2j.Pattern;
import org.apache.hadoop.shaded.com.google.re2j.PatternSyntaxException;
import org.apache.spark.TaskContext;

/**
 * Text functions whose time and memory are bounded before they are spent.
 *
 * Regular expressions run in RE2/J, whose time grows with the text's length only. Functions whose results can grow
 * compare the length with a bound first. A long call looks now and then whether its task was cancelled. Compiled by
 * Janino when Spark starts: no lambdas, no generics at call sites.
 */
public final class Bounded {
  /** Of a compiled pattern: repetitions multiplied out. */
  static final int PATTERN_SIZE_MAX = 20000;
  static final int PATTERNS_KEPT_MAX = 256;
  static final int LONG_TEXT = 4096;
  static final int LOOK_EVERY = 65536;

  private static final ConcurrentHashMap PATTERNS = new ConcurrentHashMap();

  private Bounded() {}

  /** The error that mvserver.compiler.failures reads back. */
  public static RuntimeException failure(String sqlstate, String message) {
    return new IllegalArgumentException("mvserver:" + sqlstate + ":" + message + "\n");
  }

  public static RuntimeException tooLarge() {
    return failure("54000", "requested length too large");
  }

  static void look() {
    TaskContext task = TaskContext.get();
    if (task != null) {
      task.killTaskIfInterrupted();
    }
  }

  /** A long text that ends its reader when the task is cancelled. */
  static final class Watched implements CharSequence {
    private final String text;
    private int reads;

    Watched(String text) {
      this.text = text;
    }

    public int length() {
      return text.length();
    }

    public char charAt(int index) {
      reads = reads + 1;
      if (reads >= LOOK_EVERY) {
        reads = 0;
        look();
      }
      return text.charAt(index);
    }

    public CharSequence subSequence(int start, int end) {
      return text.substring(start, end);
    }

    public String toString() {
      return text;
    }
  }

  /**
   * A pattern for both engines. Java's is several times as fast, and is used for texts so short that even all ways of
   * backtracking together are few. It is null where the pattern's ways cannot be told.
   */
  static final class Compiled {
    final Pattern linear;
    final java.util.regex.Pattern quick;
    final int quickLength;

    Compiled(Pattern linear, java.util.regex.Pattern quick, int quickLength) {
      this.linear = linear;
      this.quick = quick;
      this.quickLength = quickLength;
    }
  }

  /** Matches of a pattern in a text, by either engine. */
  static final class Matches {
    private final Matcher linear;
    private final java.util.regex.Matcher quick;

    Matches(String text, String pattern) {
      Compiled compiled = compiled(pattern);
      if (compiled.quick != null && text.length() <= compiled.quickLength) {
        quick = compiled.quick.matcher(text);
        linear = null;
      } else {
        quick = null;
        CharSequence read = text.length() > LONG_TEXT ? (CharSequence) new Watched(text) : (CharSequence) text;
        linear = compiled.linear.matcher(read);
      }
    }

    boolean find() {
      return quick != null ? quick.find() : linear.find();
    }

    boolean find(int at) {
      return quick != null ? quick.find(at) : linear.find(at);
    }

    int start(int group) {
      return quick != null ? quick.start(group) : linear.start(group);
    }

    int end(int group) {
      return quick != null ? quick.end(group) : linear.end(group);
    }

    String group(int group) {
      return quick != null ? quick.group(group) : linear.group(group);
    }

    int groupCount() {
      return quick != null ? quick.groupCount() : linear.groupCount();
    }
  }

  /** Raises 2201B where the pattern is not one. It begins with its options, (?s) or (?si): see the lowering. */
  public static Compiled compiled(String pattern) {
    Compiled known = (Compiled) PATTERNS.get(pattern);
    if (known != null) {
      return known;
    }
    if (size(pattern) > PATTERN_SIZE_MAX) {
      throw failure("2201B", "invalid regular expression: it is too large");
    }
    try {
      Pattern linear = Pattern.compile(pattern);
      Ways ways = new Ways(pattern);
      int quickLength = ways.textLength();
      boolean quick = quickLength > 0;
      known = new Compiled(linear, quick ? java.util.regex.Pattern.compile(ways.java()) : null, quickLength);
    } catch (PatternSyntaxException error) {
      throw failure("2201B", "invalid regular expression: " + error.getDescription());
    } catch (RuntimeException error) {
      throw failure("2201B", "invalid regular expression");
    } catch (StackOverflowError error) {
      throw failure("2201B", "invalid regular expression: it is nested too deeply");
    }
    if (pattern.length() <= LONG_TEXT) {
      if (PATTERNS.size() >= PATTERNS_KEPT_MAX) {
        PATTERNS.clear();
      }
      PATTERNS.put(pattern, known);
    }
    return known;
  }

  /** At least as many instructions as RE2 makes of it: each group's content as often as its greatest repetitions say. */
  static long size(String pattern) {
    if (pattern.length() > PATTERN_SIZE_MAX) {
      return pattern.length();
    }
    ArrayList outer = new ArrayList();
    long total = 0;
    long last = 0;
    int at = 0;
    while (at < pattern.length()) {
      char c = pattern.charAt(at);
      int next = at + 1;
      if (c == '\\') {
        next = at + 2;
        total = total + 2;
        last = 2;
      } else if (c == '[') {
        next = classEnd(pattern, at);
        total = total + (next - at);
        last = next - at;
      } else if (c == '(') {
        outer.add(Long.valueOf(total));
        total = 0;
        last = 0;
      } else if (c == ')' && !outer.isEmpty()) {
        last = total + 2;
        total = ((Long) outer.remove(outer.size() - 1)).longValue() + last;
      } else if (c == '{') {
        long most = repetitions(pattern, at);
        if (most > 1) {
          total = total + last * (most - 1);
          last = last * most;
        }
        total = total + 1;
      } else {
        total = total + 1;
        if (c != '*' && c != '+' && c != '?') {
          last = 1;
        }
      }
      if (total > PATTERN_SIZE_MAX) {
        return total;
      }
      at = next;
    }
    for (int i = 0; i < outer.size(); i = i + 1) {
      total = total + ((Long) outer.get(i)).longValue();
    }
    return total;
  }

  private static int classEnd(String pattern, int at) {
    int end = at + 1;
    while (end < pattern.length() && (pattern.charAt(end) != ']' || end == at + 1)) {
      end = end + (pattern.charAt(end) == '\\' ? 2 : 1);
    }
    return Math.min(pattern.length(), end + 1);
  }

  private static long repetitions(String pattern, int at) {
    long most = 0;
    long number = 0;
    for (int i = at + 1; i < pattern.length(); i = i + 1) {
      char c = pattern.charAt(i);
      if (c >= '0' && c <= '9') {
        number = Math.min(PATTERN_SIZE_MAX, number * 10 + (c - '0'));
      } else {
        most = Math.max(most, number);
        number = 0;
        if (c != ',') {
          break;
        }
      }
    }
    return most;
  }

  /** Where to look on behind a match: an empty one is passed by a whole character. */
  private static int behind(String text, int start, int end) {
    if (end > start) {
      return end;
    }
    return end >= text.length() ? text.length() + 1 : end + Character.charCount(text.codePointAt(end));
  }

  public static boolean matches(String text, String pattern) {
    return new Matches(text, pattern).find();
  }

  public static int count(String text, String pattern) {
    Matches matcher = new Matches(text, pattern);
    int found = 0;
    int at = 0;
    while (at <= text.length() && matcher.find(at)) {
      found = found + 1;
      at = behind(text, matcher.start(0), matcher.end(0));
    }
    return found;
  }

  public static int position(String text, String pattern) {
    Matches matcher = new Matches(text, pattern);
    return matcher.find() ? text.codePointCount(0, matcher.start(0)) + 1 : 0;
  }

  /** A group of the first match; null where there is no match, empty where the group took no part in it. */
  public static String extract(String text, String pattern, int group) {
    Matches matcher = new Matches(text, pattern);
    if (group < 0 || group > matcher.groupCount()) {
      throw failure("22023", "the regular expression has no group " + group);
    }
    if (!matcher.find()) {
      return null;
    }
    String found = matcher.group(group);
    return found == null ? "" : found;
  }

  /** The groups of the first match, or the whole of it where the pattern has none; null where there is no match. */
  public static String[] groups(String text, String pattern, int most) {
    Matches matcher = new Matches(text, pattern);
    return matcher.find() ? groups(matcher, new long[] {Math.max(most, text.length())}) : null;
  }

  /** The same of each match. */
  public static String[][] allGroups(String text, String pattern, int most) {
    Matches matcher = new Matches(text, pattern);
    long[] room = {Math.max(most, text.length())};
    ArrayList found = new ArrayList();
    int at = 0;
    while (at <= text.length() && matcher.find(at)) {
      found.add(groups(matcher, room));
      at = behind(text, matcher.start(0), matcher.end(0));
    }
    String[][] made = new String[found.size()][];
    for (int i = 0; i < made.length; i = i + 1) {
      made[i] = (String[]) found.get(i);
    }
    return made;
  }

  /** A group that took no part in the match is null. The room goes down by a character and what the group has. */
  private static String[] groups(Matches matcher, long[] room) {
    int count = matcher.groupCount();
    String[] made = new String[Math.max(count, 1)];
    for (int i = 0; i < made.length; i = i + 1) {
      made[i] = matcher.group(count == 0 ? 0 : i + 1);
      room[0] = room[0] - 1 - (made[i] == null ? 0 : made[i].length());
      if (room[0] < -made.length) {
        throw tooLarge();
      }
    }
    return made;
  }

  /** In the replacement, \1 to \9 and \& stand for what was matched, as in PostgreSQL. */
  public static String replaceMatches(String text, String pattern, String replacement, boolean everywhere, int most) {
    Matches matcher = new Matches(text, pattern);
    most = Math.max(most, text.length());
    StringBuilder made = null;
    int kept = 0;
    int at = 0;
    while (at <= text.length() && matcher.find(at)) {
      int start = matcher.start(0);
      int end = matcher.end(0);
      if (made == null) {
        made = new StringBuilder();
      }
      append(made, text, kept, start, most);
      expand(made, matcher, replacement, text, most);
      kept = end;
      at = behind(text, start, end);
      if (!everywhere) {
        break;
      }
    }
    if (made == null) {
      return text;
    }
    append(made, text, kept, text.length(), most);
    return made.toString();
  }

  private static void append(StringBuilder made, String text, int start, int end, int most) {
    if (made.length() + (end - start) > most) {
      throw tooLarge();
    }
    made.append(text, start, end);
  }

  private static void expand(StringBuilder made, Matches matcher, String replacement, String text, int most) {
    int at = 0;
    while (at < replacement.length()) {
      char c = replacement.charAt(at);
      char after = at + 1 < replacement.length() ? replacement.charAt(at + 1) : ' ';
      if (c == '\\' && (after == '&' || (after >= '1' && after <= '9'))) {
        int group = after == '&' ? 0 : after - '0';
        if (group <= matcher.groupCount() && matcher.start(group) >= 0) {
          append(made, text, matcher.start(group), matcher.end(group), most);
        }
        at = at + 2;
      } else if (c == '\\' && after == '\\' && at + 1 < replacement.length()) {
        append(made, replacement, at, at + 1, most);
        at = at + 2;
      } else {
        append(made, replacement, at, at + 1, most);
        at = at + 1;
      }
    }
  }

  /** LIKE with backslash as the escape. The last % alone is gone back to, so that time is text by pattern at most. */
  public static boolean like(String text, String pattern) {
    int length = pattern.length();
    int t = 0;
    int p = 0;
    int star = -1;
    int mark = 0;
    int steps = 0;
    checkEscapes(pattern);
    while (t < text.length()) {
      steps = steps + 1;
      if (steps >= LOOK_EVERY) {
        steps = 0;
        look();
      }
      if (p < length) {
        char c = pattern.charAt(p);
        if (c == '%') {
          star = p;
          mark = t;
          p = p + 1;
          continue;
        }
        if (c == '_') {
          t = t + Character.charCount(text.codePointAt(t));
          p = p + 1;
          continue;
        }
        int literal = c == '\\' ? p + 1 : p;
        if (pattern.charAt(literal) == text.charAt(t)) {
          t = t + 1;
          p = literal + 1;
          continue;
        }
      }
      if (star < 0) {
        return false;
      }
      mark = mark + Character.charCount(text.codePointAt(mark));
      t = mark;
      p = star + 1;
    }
    while (p < length && pattern.charAt(p) == '%') {
      p = p + 1;
    }
    return p == length;
  }

  private static void checkEscapes(String pattern) {
    int at = pattern.indexOf('\\');
    while (at >= 0) {
      if (at + 1 == pattern.length()) {
        throw failure("22025", "LIKE pattern must not end with escape character");
      }
      at = pattern.indexOf('\\', at + 2);
    }
  }

  public static String repeat(String text, int times, int most) {
    if (times <= 0 || text.isEmpty()) {
      return "";
    }
    if ((long) text.length() * times > Math.max(most, text.length())) {
      throw tooLarge();
    }
    return text.repeat(times);
  }

  public static String pad(String text, int length, String fill, boolean left, int most) {
    if (length > Math.max(most, text.length())) {
      throw tooLarge();
    }
    if (length <= 0) {
      return "";
    }
    int given = text.codePointCount(0, text.length());
    if (given >= length) {
      return text.substring(0, text.offsetByCodePoints(0, length));
    }
    if (fill.isEmpty()) {
      return text;
    }
    StringBuilder made = new StringBuilder();
    int unit = fill.codePointCount(0, fill.length());
    int missing = length - given;
    if (((long) (missing / unit) + 1) * fill.length() + text.length() > 2L * most) {
      throw tooLarge();
    }
    for (int i = missing / unit; i > 0; i = i - 1) {
      made.append(fill);
    }
    made.append(fill, 0, fill.offsetByCodePoints(0, missing % unit));
    return left ? made.append(text).toString() : text + made;
  }

  public static String replace(String text, String from, String to, int most) {
    if (from.isEmpty()) {
      return text;
    }
    int at = text.indexOf(from);
    if (at < 0) {
      return text;
    }
    long length = text.length();
    for (int found = at; found >= 0; found = text.indexOf(from, found + from.length())) {
      length = length + to.length() - from.length();
    }
    if (length > Math.max(most, text.length())) {
      throw tooLarge();
    }
    StringBuilder made = new StringBuilder((int) length);
    int kept = 0;
    while (at >= 0) {
      made.append(text, kept, at).append(to);
      kept = at + from.length();
      at = text.indexOf(from, kept);
    }
    return made.append(text, kept, text.length()).toString();
  }

  public static String concat(String left, String right, int most) {
    if ((long) left.length() + right.length() > most) {
      throw tooLarge();
    }
    return left + right;
  }

  /** The bytes of a row that a task sends to the driver, added up: an error where they come to more than it may. */
  private static final ThreadLocal SENT = new ThreadLocal();

  public static boolean fits(long bytes, long most) {
    TaskContext task = TaskContext.get();
    if (task == null) {
      return true;
    }
    long[] sent = (long[]) SENT.get();
    if (sent == null || sent[0] != task.taskAttemptId()) {
      sent = new long[] {task.taskAttemptId(), 0};
      SENT.set(sent);
    }
    sent[1] = sent[1] + bytes;
    if (sent[1] > most) {
      throw new IllegalStateException("rows of a task come to more bytes than spark.driver.maxResultSize lets it send");
    }
    return true;
  }

  /**
   * In how many ways a backtracking engine can go through a pattern: at most factor * length^degree * size steps.
   * Known for patterns of plain characters, classes and groups, with repetitions of single characters alone; these mean
   * the same in both engines. Anything else is not known.
   */
  static final class Ways {
    static final double STEPS_MAX = 300000.0;
    private final String pattern;
    private final StringBuilder java = new StringBuilder();
    private int at;
    private boolean known = true;
    private double factor = 1;
    private int degree;
    private long size = 1;
    private boolean anchored;

    Ways(String pattern) {
      this.pattern = pattern;
      if (pattern.startsWith("(?s)")) {
        at = 4;
        java.append("(?s)");
      } else if (pattern.startsWith("(?si)")) {
        at = 5;
        java.append("(?siu)");
      } else {
        known = false;
        return;
      }
      anchored = at < pattern.length() && pattern.charAt(at) == '^' && !hasTopAlternative();
      double[] all = alternatives(0);
      if (at < pattern.length()) {
        known = false;
      }
      factor = all[0];
      degree = (int) all[1] + (anchored ? 0 : 1);
    }

    String java() {
      return java.toString();
    }

    /** The longest text of which the steps are few; 0 where that is not known. */
    int textLength() {
      if (!known || size > 1000) {
        return 0;
      }
      double room = STEPS_MAX / (factor * size);
      return room < 1 ? 0 : (int) Math.min(1 << 20, degree == 0 ? 1 << 20 : Math.pow(room, 1.0 / degree));
    }

    private boolean hasTopAlternative() {
      return pattern.indexOf('|') >= 0;
    }

    /** Factor and degree of alternatives up to the end of their group. */
    private double[] alternatives(int depth) {
      double sum = 0;
      double most = 0;
      while (known) {
        double[] one = sequence(depth);
        sum = sum + one[0];
        most = Math.max(most, one[1]);
        if (at < pattern.length() && pattern.charAt(at) == '|') {
          java.append('|');
          at = at + 1;
        } else {
          break;
        }
      }
      return new double[] {sum, most};
    }

    private double[] sequence(int depth) {
      double product = 1;
      double sum = 0;
      while (known && at < pattern.length()) {
        char c = pattern.charAt(at);
        if (c == '|' || (c == ')' && depth > 0)) {
          break;
        }
        if (c == '(') {
          double[] inner = group(depth);
          product = product * inner[0];
          sum = sum + inner[1];
        } else if (c == '^' && at == (pattern.startsWith("(?si)") ? 5 : 4)) {
          java.append('^');
          at = at + 1;
        } else if (c == '$' && at + 1 == pattern.length()) {
          java.append("\\z");
          at = at + 1;
        } else {
          atom(c);
          double[] repeated = repetition();
          product = product * repeated[0];
          sum = sum + repeated[1];
        }
        if (product > STEPS_MAX || sum > 6) {
          known = false;
        }
      }
      return new double[] {product, sum};
    }

    /** A group, which may be optional and nothing more. */
    private double[] group(int depth) {
      if (depth > 20) {
        known = false;
        return new double[] {1, 0};
      }
      if (pattern.startsWith("(?:", at)) {
        java.append("(?:");
        at = at + 3;
      } else if (pattern.startsWith("(?", at)) {
        known = false;
        return new double[] {1, 0};
      } else {
        java.append('(');
        at = at + 1;
      }
      double[] inner = alternatives(depth + 1);
      if (!known || at >= pattern.length() || pattern.charAt(at) != ')') {
        known = false;
        return inner;
      }
      java.append(')');
      at = at + 1;
      if (at < pattern.length()) {
        char c = pattern.charAt(at);
        if (c == '?') {
          java.append('?');
          at = at + 1;
          inner[0] = inner[0] + 1;
          c = at < pattern.length() ? pattern.charAt(at) : ' ';
        }
        if (c == '*' || c == '+' || c == '{' || c == '?') {
          known = false;
        }
      }
      return inner;
    }

    private void atom(char c) {
      size = size + 1;
      if (c == '.') {
        java.append('.');
        at = at + 1;
      } else if (c == '[') {
        set();
      } else if (c == '\\') {
        escape(false);
      } else if (c == '*' || c == '+' || c == '?' || c == '{' || c == '}' || c == ']' || c == ')' || c == '^'
          || c == '$' || c >= 0x80) {
        known = false;
      } else {
        java.append(c);
        at = at + 1;
      }
    }

    private void escape(boolean inSet) {
      char c = at + 1 < pattern.length() ? pattern.charAt(at + 1) : 'x';
      if (c == 's') {
        java.append(inSet ? "\\t\\n\\f\\r " : "[\\t\\n\\f\\r ]");
      } else if (c == 'S' && !inSet) {
        java.append("[^\\t\\n\\f\\r ]");
      } else if (c == 'd' || c == 'w' || c == 'n' || c == 'r' || c == 't' || (!inSet && (c == 'D' || c == 'W'))
          || (c > ' ' && c < 0x7f && !Character.isLetterOrDigit(c))) {
        java.append('\\').append(c);
      } else {
        known = false;
      }
      at = at + 2;
    }

    private void set() {
      java.append('[');
      at = at + 1;
      if (at < pattern.length() && pattern.charAt(at) == '^') {
        java.append('^');
        at = at + 1;
      }
      boolean first = true;
      while (known) {
        if (at >= pattern.length()) {
          known = false;
          return;
        }
        char c = pattern.charAt(at);
        if (c == ']') {
          if (first) {
            known = false;
          }
          java.append(']');
          at = at + 1;
          return;
        }
        first = false;
        if (c == '[' || c == '&' || c == '^' || c >= 0x80) {
          known = false;
        } else if (c == '\\') {
          escape(true);
        } else {
          java.append(c);
          at = at + 1;
        }
      }
    }

    /** Factor and degree of what stands behind a single character. */
    private double[] repetition() {
      double[] found = {1, 0};
      if (at >= pattern.length()) {
        return found;
      }
      char c = pattern.charAt(at);
      if (c == '*' || c == '+') {
        found[1] = 1;
        at = at + 1;
        java.append(c);
      } else if (c == '?') {
        found[0] = 2;
        at = at + 1;
        java.append(c);
      } else if (c == '{') {
        int end = pattern.indexOf('}', at);
        String inside = end < 0 ? "x" : pattern.substring(at + 1, end);
        int comma = inside.indexOf(',');
        int least = number(comma < 0 ? inside : inside.substring(0, comma));
        int most = comma < 0 ? least : comma + 1 == inside.length() ? -2 : number(inside.substring(comma + 1));
        if (least < 0 || most == -1 || (most >= 0 && most < least)) {
          known = false;
          return found;
        }
        size = size + Math.max(least, most);
        found[0] = most == -2 ? 1 : most - least + 1;
        found[1] = most == -2 ? 1 : 0;
        java.append(pattern, at, end + 1);
        at = end + 1;
      } else {
        return found;
      }
      if (at < pattern.length() && pattern.charAt(at) == '?') {
        java.append('?');
        at = at + 1;
      }
      if (at < pattern.length()) {
        char after = pattern.charAt(at);
        if (after == '*' || after == '+' || after == '?' || after == '{') {
          known = false;
        }
      }
      return found;
    }

    private static int number(String text) {
      if (text.isEmpty() || text.length() > 3) {
        return -1;
      }
      for (int i = 0; i < text.length(); i = i + 1) {
        if (text.charAt(i) < '0' || text.charAt(i) > '9') {
          return -1;
        }
      }
      return Integer.parseInt(text);
    }
  }
}
