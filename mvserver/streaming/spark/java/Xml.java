package mvserver;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.xml.stream.XMLInputFactory;
import javax.xml.stream.XMLStreamConstants;
import javax.xml.stream.XMLStreamException;
import javax.xml.stream.XMLStreamReader;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;

/**
 * Records of XML as JSON of the declared columns, whose scalars are texts; or why a record has no such form.
 *
 * The whole record is read, with the parser of the JDK. It is one element, has no document type, and so has neither
 * entities of its own nor anything from elsewhere. Compiled by Janino when Spark starts: no lambdas, no generics at
 * call sites.
 */
public final class Xml {
  static final int DEPTH_MAX = 100;
  static final int SHOWN_MAX = 200;
  static final String OWN_TEXT = "_value";
  static final String INSTANCE = "http://www.w3.org/2001/XMLSchema-instance";

  private static final XMLInputFactory FACTORY = factory();

  private Xml() {}

  private static XMLInputFactory factory() {
    XMLInputFactory made = XMLInputFactory.newDefaultFactory();
    made.setProperty(XMLInputFactory.SUPPORT_DTD, Boolean.FALSE);
    made.setProperty(XMLInputFactory.IS_SUPPORTING_EXTERNAL_ENTITIES, Boolean.FALSE);
    made.setProperty(XMLInputFactory.IS_COALESCING, Boolean.TRUE);
    return made;
  }

  static final class Rejected extends RuntimeException {
    Rejected(String reason) {
      super(reason, null, false, false);
    }
  }

  /** The function that Spark calls: (JSON, reason) of a record. */
  public static final class Decoder implements org.apache.spark.sql.api.java.UDF1 {
    private final String columns;
    private transient Type type;

    public Decoder(String key, String columns, String schemas) {
      this.columns = columns;
    }

    public Object call(Object value) throws Exception {
      if (type == null) {
        type = Type.struct((JsonNode) new ObjectMapper().readTree(columns));
      }
      try {
        if (value == null) {
          throw new Rejected("the value is null");
        }
        return row(type.of(read((byte[]) value)).toString(), null);
      } catch (Rejected rejected) {
        return row(null, rejected.getMessage());
      }
    }

    private static Row row(Object json, Object reason) {
      Object[] values = new Object[2];
      values[0] = json;
      values[1] = reason;
      return RowFactory.create(values);
    }
  }

  // --- what is declared ----------------------------------------------------------------------------------------------

  static final class Type {
    private boolean isStruct;
    private Type element;
    private String[] names;
    private String[] spellings;
    private Type[] types;

    static Type struct(JsonNode fields) {
      Type made = new Type();
      made.isStruct = true;
      made.names = new String[fields.size()];
      made.spellings = new String[fields.size()];
      made.types = new Type[fields.size()];
      for (int i = 0; i < fields.size(); i++) {
        JsonNode field = (JsonNode) fields.get(i);
        JsonNode spelling = (JsonNode) field.get("spelling");
        made.names[i] = ((JsonNode) field.get("name")).textValue();
        made.spellings[i] = spelling.isNull() ? made.names[i] : spelling.textValue();
        made.types[i] = of((JsonNode) field.get("type"));
      }
      return made;
    }

    static Type of(JsonNode type) {
      if (type.has("fields")) {
        return struct((JsonNode) type.get("fields"));
      }
      Type made = new Type();
      made.element = type.has("element") ? of((JsonNode) type.get("element")) : null;
      return made;
    }

    JsonNode of(Element given) {
      if (given.isNil) {
        return JsonNodeFactory.instance.nullNode();
      }
      if (isStruct) {
        return object(given);
      }
      if (!given.children.isEmpty()) {
        throw new Rejected("element \"" + given.name + "\" has elements in it, and is to have a value");
      }
      return JsonNodeFactory.instance.textNode(given.text.toString());
    }

    private JsonNode object(Element given) {
      ObjectNode made = JsonNodeFactory.instance.objectNode();
      boolean takesText = false;
      for (int i = 0; i < names.length; i++) {
        List found = given.named(names[i], spellings[i]);
        if (found != null) {
          made.set(names[i], types[i].element == null ? types[i].single(found) : types[i].array(found));
        } else if (names[i].equals(OWN_TEXT)) {
          takesText = true;
          made.put(names[i], given.text.toString());
        } else {
          String attribute = given.attribute(names[i], spellings[i]);
          if (attribute != null) {
            made.put(names[i], attribute);
          }
        }
      }
      if (!takesText && !given.text.toString().isBlank()) {
        throw new Rejected("element \"" + given.name + "\" has text, and is to have elements: " + shown(given.text));
      }
      return made;
    }

    private JsonNode single(List found) {
      Element first = (Element) found.get(0);
      if (found.size() > 1) {
        throw new Rejected("element \"" + first.name + "\" is there " + found.size() + " times");
      }
      return of(first);
    }

    private JsonNode array(List found) {
      ArrayNode made = JsonNodeFactory.instance.arrayNode();
      for (int i = 0; i < found.size(); i++) {
        made.add(element.of((Element) found.get(i)));
      }
      return made;
    }
  }

  static String shown(Object value) {
    String text = String.valueOf(value).trim();
    return text.length() > SHOWN_MAX ? text.substring(0, SHOWN_MAX) : text;
  }

  // --- what was written ----------------------------------------------------------------------------------------------

  static final class Element {
    final String name;
    final LinkedHashMap children = new LinkedHashMap();
    final LinkedHashMap attributes = new LinkedHashMap();
    final StringBuilder text = new StringBuilder();
    boolean isNil;

    Element(String name) {
      this.name = name;
    }

    void add(Element child) {
      List same = (List) children.get(child.name);
      if (same == null) {
        same = new ArrayList();
        children.put(child.name, same);
      }
      same.add(child);
    }

    /** The elements in it of a name: exactly so, else as it was spelled, else those of the one name that differs in
     * case alone. */
    List named(String wanted, String spelling) {
      List exact = (List) children.get(wanted);
      List spelled = exact != null ? exact : (List) children.get(spelling);
      return spelled != null ? spelled : (List) alike(children, wanted);
    }

    String attribute(String wanted, String spelling) {
      if (!wanted.startsWith("_")) {
        return null;
      }
      String exact = (String) attributes.get(wanted.substring(1));
      String spelled = exact != null ? exact : (String) attributes.get(spelling.substring(1));
      return spelled != null ? spelled : (String) alike(attributes, wanted.substring(1));
    }

    private static Object alike(Map among, String wanted) {
      Object found = null;
      int count = 0;
      Iterator entries = among.entrySet().iterator();
      while (entries.hasNext()) {
        Map.Entry each = (Map.Entry) entries.next();
        if (wanted.equalsIgnoreCase((String) each.getKey())) {
          count = count + 1;
          found = each.getValue();
        }
      }
      return count == 1 ? found : null;
    }
  }

  static Element read(byte[] record) {
    Element whole = null;
    ArrayList open = new ArrayList();
    try {
      XMLStreamReader in = FACTORY.createXMLStreamReader(new ByteArrayInputStream(record));
      while (in.hasNext()) {
        int event = in.next();
        if (event == XMLStreamConstants.DTD) {
          throw new Rejected("the value has a document type, which is not read");
        }
        if (event == XMLStreamConstants.ENTITY_REFERENCE) {
          throw new Rejected("the value has an entity that is not known: " + shown(in.getLocalName()));
        }
        if (event == XMLStreamConstants.START_ELEMENT) {
          Element found = element(in);
          if (open.isEmpty()) {
            whole = found;
          } else {
            ((Element) open.get(open.size() - 1)).add(found);
          }
          open.add(found);
          if (open.size() > DEPTH_MAX) {
            throw new Rejected("the value is nested too deeply");
          }
        } else if (event == XMLStreamConstants.END_ELEMENT) {
          open.remove(open.size() - 1);
        } else if (event == XMLStreamConstants.CHARACTERS || event == XMLStreamConstants.CDATA) {
          ((Element) open.get(open.size() - 1)).text.append(in.getText());
        }
      }
    } catch (XMLStreamException error) {
      String message = String.valueOf(error.getMessage());
      int place = message.indexOf("Message: ");
      throw new Rejected("the value is not one XML element: " + shown(place < 0 ? message : message.substring(place + 9)));
    }
    return whole;
  }

  private static Element element(XMLStreamReader in) {
    Element made = new Element(in.getLocalName());
    for (int i = 0; i < in.getAttributeCount(); i++) {
      String value = in.getAttributeValue(i);
      if (INSTANCE.equals(in.getAttributeNamespace(i))) {
        boolean isNil = in.getAttributeLocalName(i).equals("nil");
        made.isNil = made.isNil || (isNil && (value.equals("true") || value.equals("1")));
      } else {
        made.attributes.put(in.getAttributeLocalName(i), value);
      }
    }
    return made;
  }
}
