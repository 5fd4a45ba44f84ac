package mvserver;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What lies at a path of JSON text, as JSON text with its numbers as they are written.
 *
 * A path comes as the program that mvserver.compiler.capabilities.json_paths makes of it. Nodes and characters are
 * counted as they are found, so that no path takes memory without bound. Compiled by Janino when Spark starts: no
 * lambdas, no generics at call sites.
 */
public final class JsonPaths {
  /** That a call comes upon, those of conditions included: a bound of its time, too. */
  static final int NODES_MAX = 4000000;
  static final int PROGRAMS_KEPT_MAX = 256;
  private static final ConcurrentHashMap PROGRAMS = new ConcurrentHashMap();
  private static final ObjectMapper MAPPER = mapper();

  private int nodes;

  private JsonPaths() {}

  private static ObjectMapper mapper() {
    ObjectMapper made = new ObjectMapper();
    made.enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS);
    made.enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
    made.setNodeFactory(JsonNodeFactory.withExactBigDecimals(true));
    return made;
  }

  private static RuntimeException tooLarge() {
    return new IllegalArgumentException("mvserver:54000:requested length too large\n");
  }

  /** Null where nothing lies there, or the text is no JSON. */
  public static String first(String text, String program, int most) {
    ArrayList found = found(text, program);
    if (found == null || found.isEmpty()) {
      return null;
    }
    String made = found.get(0).toString();
    if (made.length() > Math.max(most, text.length())) {
      throw tooLarge();
    }
    return made;
  }

  /** Null where the text is no JSON. */
  public static String[] all(String text, String program, int most) {
    ArrayList found = found(text, program);
    if (found == null) {
      return null;
    }
    String[] made = new String[found.size()];
    long length = 0;
    for (int i = 0; i < made.length; i = i + 1) {
      made[i] = found.get(i).toString();
      length = length + made[i].length();
      if (length > Math.max(most, text.length())) {
        throw tooLarge();
      }
    }
    return made;
  }

  private static ArrayList found(String text, String program) {
    JsonNode steps = program(program);
    JsonNode root;
    try {
      root = MAPPER.readTree(text);
    } catch (JsonProcessingException error) {
      return null;
    }
    if (root == null || root.isMissingNode()) {
      return null;
    }
    return new JsonPaths().walked(root, steps);
  }

  private static JsonNode program(String text) {
    JsonNode known = (JsonNode) PROGRAMS.get(text);
    if (known == null) {
      try {
        known = MAPPER.readTree(text);
      } catch (JsonProcessingException error) {
        throw new IllegalStateException("the program of a JSON path is no JSON", error);
      }
      if (PROGRAMS.size() >= PROGRAMS_KEPT_MAX) {
        PROGRAMS.clear();
      }
      PROGRAMS.put(text, known);
    }
    return known;
  }

  private ArrayList walked(JsonNode root, JsonNode steps) {
    ArrayList found = new ArrayList();
    found.add(root);
    for (int i = 0; i < steps.size(); i = i + 1) {
      ArrayList next = new ArrayList();
      for (int j = 0; j < found.size(); j = j + 1) {
        step((JsonNode) found.get(j), at(steps, i), next);
      }
      found = next;
    }
    return found;
  }

  /** Janino would take the method of TreeNode. */
  private static JsonNode at(JsonNode list, int index) {
    return (JsonNode) list.get(index);
  }

  private void add(ArrayList to, JsonNode node) {
    nodes = nodes + 1;
    if (nodes > NODES_MAX) {
      throw tooLarge();
    }
    to.add(node);
  }

  private void step(JsonNode node, JsonNode step, ArrayList to) {
    String kind = at(step, 0).asText();
    if (kind.equals("key")) {
      JsonNode found = node.isObject() ? (JsonNode) node.get(at(step, 1).asText()) : null;
      if (found != null) {
        add(to, found);
      }
    } else if (kind.equals("index")) {
      int index = at(step, 1).asInt();
      JsonNode found = node.isArray() ? at(node, index < 0 ? node.size() + index : index) : null;
      if (found != null) {
        add(to, found);
      }
    } else if (kind.equals("all")) {
      for (Iterator each = node.elements(); each.hasNext();) {
        add(to, (JsonNode) each.next());
      }
    } else if (kind.equals("slice")) {
      slice(node, step, to);
    } else if (kind.equals("any of")) {
      for (int i = 1; i < step.size(); i = i + 1) {
        step(node, at(step, i), to);
      }
    } else if (kind.equals("below")) {
      below(node, to);
    } else {
      for (Iterator each = node.elements(); each.hasNext();) {
        JsonNode inner = (JsonNode) each.next();
        if (holds(at(step, 1), inner)) {
          add(to, inner);
        }
      }
    }
  }

  /** The node and all in it. Jackson bounds the depth of what it reads. */
  private void below(JsonNode node, ArrayList to) {
    add(to, node);
    for (Iterator each = node.elements(); each.hasNext();) {
      below((JsonNode) each.next(), to);
    }
  }

  private void slice(JsonNode node, JsonNode step, ArrayList to) {
    int by = at(step, 3).isNull() ? 1 : at(step, 3).asInt();
    if (!node.isArray() || by == 0) {
      return;
    }
    int size = node.size();
    int start = at(step, 1).isNull() ? (by > 0 ? 0 : size - 1) : place(at(step, 1).asInt(), size);
    int end = at(step, 2).isNull() ? (by > 0 ? size : -1) : place(at(step, 2).asInt(), size);
    if (by > 0) {
      for (long i = Math.max(start, 0); i < Math.min(end, size); i = i + by) {
        add(to, at(node, (int) i));
      }
    } else {
      for (long i = Math.min(start, size - 1); i > Math.max(end, -1); i = i + by) {
        add(to, at(node, (int) i));
      }
    }
  }

  private static int place(int index, int size) {
    return index < 0 ? size + index : index;
  }

  private boolean holds(JsonNode test, JsonNode node) {
    String kind = at(test, 0).asText();
    if (kind.equals("and") || kind.equals("or")) {
      boolean decides = kind.equals("or");
      for (int i = 1; i < test.size(); i = i + 1) {
        if (holds(at(test, i), node) == decides) {
          return decides;
        }
      }
      return !decides;
    }
    if (kind.equals("not")) {
      return !holds(at(test, 1), node);
    }
    if (kind.equals("is there")) {
      return !walked(node, at(test, 1)).isEmpty();
    }
    return compared(at(test, 1).asText(), operand(at(test, 2), node), operand(at(test, 3), node));
  }

  /** Null where not just one node lies there. */
  private JsonNode operand(JsonNode operand, JsonNode node) {
    if (at(operand, 0).asText().equals("value")) {
      return at(operand, 1);
    }
    ArrayList found = walked(node, at(operand, 1));
    return found.size() == 1 ? (JsonNode) found.get(0) : null;
  }

  private static boolean compared(String sign, JsonNode left, JsonNode right) {
    if (sign.equals("==")) {
      return same(left, right);
    }
    if (sign.equals("!=")) {
      return !same(left, right);
    }
    boolean orSame = sign.length() == 2 && same(left, right);
    return orSame || (sign.charAt(0) == '<' ? less(left, right) : less(right, left));
  }

  private static boolean same(JsonNode left, JsonNode right) {
    if (left == null || right == null) {
      return left == right;
    }
    if (left.isNumber() && right.isNumber()) {
      return left.decimalValue().compareTo(right.decimalValue()) == 0;
    }
    return left.equals(right);
  }

  private static boolean less(JsonNode left, JsonNode right) {
    if (left == null || right == null) {
      return false;
    }
    if (left.isNumber() && right.isNumber()) {
      return left.decimalValue().compareTo(right.decimalValue()) < 0;
    }
    return left.isTextual() && right.isTextual() && left.asText().compareTo(right.asText()) < 0;
  }
}
