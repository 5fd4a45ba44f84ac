package mvserver;

/**
 * What the text of a JSON record may hold that Spark's parser does not show, found in one run over its bytes.
 *
 * Each bit says that the text may be odd in one way; the patterns of spark_sinks.decode.json_text then say whether it
 * is. Most texts are odd in none. The text need not be JSON: it is asked of what the parser has read without an error.
 * Compiled by Janino when Spark starts: no lambdas, no generics at call sites.
 */
public final class JsonShape {
  /** It may be another thing than one object. */
  static final int MANY = 1;
  /** A key may be written in another way than in small letters of ASCII; or there are escapes with code points. */
  static final int KEYS = 2;
  /** A number may have more digits behind its point than the parser keeps, or an exponent; one in quotes, too. */
  static final int NUMBERS = 4;

  private final byte[] text;
  private final int digits;
  private int at;
  private int found;

  private JsonShape(byte[] text, int digits) {
    this.text = text;
    this.digits = digits;
  }

  /** The bits of what may be odd. The parser keeps so many digits behind the point of a number. */
  public static int oddities(byte[] text, int digits) {
    JsonShape shape = new JsonShape(text, digits);
    shape.read();
    return shape.found;
  }

  private void read() {
    skipBlanks();
    if (at == text.length || text[at] != '{') {
      found = MANY | KEYS | NUMBERS;
      return;
    }
    int depth = 0;
    while (at < text.length) {
      byte c = text[at];
      if (c == '"') {
        string();
      } else if (c == '{' || c == '[') {
        depth = depth + 1;
        at = at + 1;
      } else if (c == '}' || c == ']') {
        depth = depth - 1;
        at = at + 1;
        if (depth == 0) {
          skipBlanks();
          if (at < text.length) {
            found = found | MANY;
          }
          return;
        }
      } else if (c == '-' || (c >= '0' && c <= '9')) {
        number();
      } else {
        at = at + 1;
      }
    }
    found = found | MANY;
  }

  /** A key, or a value. */
  private void string() {
    boolean plain = true; // as a key
    boolean digitsOnly = true; // nothing in it that no number has, in whichever way it is written
    int first = at + 1;
    at = first;
    while (at < text.length && text[at] != '"') {
      byte c = text[at];
      if (c == '\\') {
        if (at + 1 < text.length && text[at + 1] == 'u') {
          found = found | KEYS | NUMBERS;
        }
        digitsOnly = false;
        at = at + 2;
      } else {
        if (c < 0 || (c >= 'A' && c <= 'Z')) {
          plain = false;
        }
        if (digitsOnly && endsNumber(c, first)) {
          digitsOnly = false;
        }
        at = at + 1;
      }
    }
    boolean isEmpty = at == first;
    at = at + 1;
    skipBlanks();
    if (at < text.length && text[at] == ':') {
      if (!plain) {
        found = found | KEYS;
      }
    } else if (digitsOnly && !isEmpty) {
      found = found | NUMBERS;
    }
  }

  /** Whether no parser of numbers goes on here: at a letter, a colon, a slash, or a minus that begins nothing. */
  private boolean endsNumber(byte c, int first) {
    if (c == '-') {
      return at > first && text[at - 1] >= '0' && text[at - 1] <= '9';
    }
    return c == ':' || c == '/' || c == '_' || (c >= 'A' && c <= 'Z' && c != 'E') || (c >= 'a' && c <= 'z' && c != 'e');
  }

  private void number() {
    int behindPoint = -1;
    while (at < text.length) {
      byte c = text[at];
      if (c >= '0' && c <= '9') {
        behindPoint = behindPoint < 0 ? behindPoint : behindPoint + 1;
      } else if (c == '.') {
        behindPoint = 0;
      } else if (c == 'e' || c == 'E') {
        found = found | NUMBERS;
      } else if (c != '-' && c != '+') {
        break;
      }
      at = at + 1;
    }
    if (behindPoint > digits) {
      found = found | NUMBERS;
    }
  }

  private void skipBlanks() {
    while (at < text.length && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r')) {
      at = at + 1;
    }
  }
}
