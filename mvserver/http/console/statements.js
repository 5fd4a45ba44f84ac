// SQL texts: names, and where statements end.

export const quoted = name => `"${name.replaceAll('"', '""')}"`;
export const literal = text => `'${text.replaceAll("'", "''")}'`;
export const qualified = (...names) => names.map(quoted).join(".");

// "database.schema.name" as the server writes it, without quotes, as its parts; a name may have dots itself.
export function parts(name) {
  const [database, schema, ...rest] = name.split(".");
  return [database, schema, rest.join(".")];
}

// What is passed over as a whole: comments, texts, names, and texts between dollars.
const WHOLE = new RegExp([
  "--[^\\n]*",
  "\\b[eE]'(?:[^'\\\\]|''|\\\\[^])*(?:'|$)",
  "'(?:[^']|'')*(?:'|$)",
  '"(?:[^"]|"")*(?:"|$)',
  "(?<![\\w$])(\\$(?:[A-Za-z_]\\w*)?\\$)[^]*?(?:\\1|$)",
].join("|"), "y");

function commentEnd(text, from) {
  let depth = 0;
  let at = from;
  do {
    if (text.startsWith("/*", at)) { depth += 1; at += 2; }
    else if (text.startsWith("*/", at)) { depth -= 1; at += 2; }
    else at += 1;
  } while (depth && at < text.length);
  return at;
}

// The statements of a text, each with the place where it begins.
export function split(text) {
  const found = [];
  let from = 0;
  let said = false;
  const end = to => {
    const piece = text.slice(from, to);
    const lead = piece.length - piece.trimStart().length;
    if (said) found.push({text: piece.trim(), from: from + lead});
    from = to + 1;
    said = false;
  };
  for (let at = 0; at < text.length;) {
    WHOLE.lastIndex = at;
    const whole = WHOLE.exec(text)?.[0];
    if (whole) {
      said ||= !whole.startsWith("--");
      at += whole.length;
    } else if (text.startsWith("/*", at)) {
      at = commentEnd(text, at);
    } else {
      if (text[at] === ";") end(at);
      else said ||= text[at].trim() !== "";
      at += 1;
    }
  }
  end(text.length);
  return found;
}

// The place of the n-th character, from 1, in JavaScript's units.
export const unitsBefore = (text, position) => Array.from(text).slice(0, position - 1).join("").length;
