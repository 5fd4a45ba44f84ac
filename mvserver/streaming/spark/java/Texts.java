package mvserver;

import java.text.Normalizer;

/**
 * Text functions that Spark has not. Compiled by Janino when Spark starts: no lambdas, no generics at call sites.
 */
public final class Texts {
  private Texts() {}

  /** Without the marks that stand over and under letters; a stroked l is a plain one. */
  public static String withoutAccents(String text) {
    String apart = Normalizer.normalize(text, Normalizer.Form.NFD);
    StringBuilder made = new StringBuilder(text.length());
    for (int i = 0; i < apart.length(); i = i + 1) {
      char c = apart.charAt(i);
      if (c == '\u0141') {
        made.append('L');
      } else if (c == '\u0142') {
        made.append('l');
      } else if (c < '\u0300' || c > '\u036F') {
        made.append(c);
      }
    }
    return made.toString();
  }

  /** Letter by letter, so that the text has as many characters as before. */
  public static String swappedCase(String text) {
    StringBuilder made = new StringBuilder(text.length());
    int at = 0;
    while (at < text.length()) {
      int c = text.codePointAt(at);
      at = at + Character.charCount(c);
      boolean capital = Character.isUpperCase(c) || Character.isTitleCase(c);
      made.appendCodePoint(capital ? Character.toLowerCase(c) : Character.toUpperCase(c));
    }
    return made.toString();
  }
}
