package mvserver;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.EOFException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.sparkproject.spark_core.protobuf.ByteString;
import org.sparkproject.spark_core.protobuf.CodedInputStream;
import org.sparkproject.spark_core.protobuf.DescriptorProtos.FileDescriptorProto;
import org.sparkproject.spark_core.protobuf.DescriptorProtos.FileDescriptorSet;
import org.sparkproject.spark_core.protobuf.Descriptors.Descriptor;
import org.sparkproject.spark_core.protobuf.Descriptors.EnumValueDescriptor;
import org.sparkproject.spark_core.protobuf.Descriptors.FieldDescriptor;
import org.sparkproject.spark_core.protobuf.Descriptors.FileDescriptor;
import org.sparkproject.spark_core.protobuf.DynamicMessage;
import org.sparkproject.spark_core.protobuf.Message;

/**
 * Records with the id of their schema before them, as rows of declared columns.
 *
 * A reader makes values of a few neutral classes of a record, by the schema that it was written with. A target makes
 * the value of a declared type of them, if that loses nothing. A record that is not so is a row with a reason. What a
 * record says of its own lengths is compared with its bytes before memory is taken. Compiled by Janino when Spark
 * starts: no lambdas, no generics at call sites.
 */
public final class Records {
  /** Before the id of a schema that has to be fetched, in place of a reason: a noncharacter. */
  static final String WANTED = "\uFDD1";
  static final int HEADER = 5;
  static final int DEPTH_MAX = 100;
  static final int SHOWN_MAX = 200;
  static final int PLANS_KEPT_MAX = 64;
  static final Object WRONG = new Object();

  private static final ConcurrentHashMap PLANS = new ConcurrentHashMap();

  private Records() {}

  static final class Rejected extends RuntimeException {
    Rejected(String reason) {
      super(reason, null, false, false);
    }
  }

  /** The function that Spark calls; equal keys mean equal texts. */
  public static final class Decoder implements org.apache.spark.sql.api.java.UDF1 {
    private final String key;
    private final String columns;
    private final String schemas;
    private transient Plan plan;

    public Decoder(String key, String columns, String schemas) {
      this.key = key;
      this.columns = columns;
      this.schemas = schemas;
    }

    public Object call(Object value) throws Exception {
      if (plan == null) {
        plan = (Plan) PLANS.get(key);
        if (plan == null) {
          if (PLANS.size() >= PLANS_KEPT_MAX) {
            PLANS.clear();
          }
          plan = new Plan(columns, schemas);
          PLANS.put(key, plan);
        }
      }
      return plan.row((byte[]) value);
    }
  }

  static final class Plan {
    private final Field[] fields;
    private final Map readers = new HashMap();
    private final Set absent = new HashSet();

    Plan(String columns, String schemas) throws Exception {
      ObjectMapper mapper = new ObjectMapper();
      fields = Field.all((JsonNode) mapper.readTree(columns));
      JsonNode known = (JsonNode) mapper.readTree(schemas);
      for (int i = 0; i < at(known, "schemas").size(); i++) {
        JsonNode each = at(at(known, "schemas"), i);
        readers.put(Integer.valueOf(at(each, "id").intValue()), reader(each));
      }
      for (int i = 0; i < at(known, "absent").size(); i++) {
        absent.add(Integer.valueOf(at(at(known, "absent"), i).intValue()));
      }
    }

    private static Reader reader(JsonNode schema) {
      String kind = at(schema, "kind").textValue();
      if (!at(schema, "error").isNull()) {
        return new Unreadable("cannot be used: " + shown(at(schema, "error").textValue()));
      }
      try {
        if (kind.equals("AVRO")) {
          return new AvroReader(schema);
        }
        if (kind.equals("PROTOBUF")) {
          return new ProtobufReader(schema);
        }
        return new Unreadable("is of kind " + kind);
      } catch (Exception error) {
        return new Unreadable("cannot be used: " + shown(error.getMessage()));
      } catch (StackOverflowError error) {
        return new Unreadable("cannot be used: it is nested too deeply");
      }
    }

    Row row(byte[] record) {
      Object[] values = new Object[fields.length + 1];
      try {
        fill(record, values);
      } catch (Rejected rejected) {
        values = new Object[fields.length + 1];
        values[fields.length] = rejected.getMessage();
      }
      return RowFactory.create(values);
    }

    private void fill(byte[] record, Object[] values) {
      if (record == null) {
        throw new Rejected("the value is null");
      }
      if (record.length < HEADER || record[0] != 0) {
        throw new Rejected("the value does not begin with the id of a schema");
      }
      Integer id = Integer.valueOf(ByteBuffer.wrap(record, 1, 4).getInt());
      Reader reader = (Reader) readers.get(id);
      if (reader == null) {
        String number = Integer.toUnsignedString(id.intValue());
        throw new Rejected(
            absent.contains(id) ? "schema " + number + " is not in the schema registry" : WANTED + number);
      }
      Object found = reader.read(record, id.intValue());
      if (!(found instanceof Map) && fields.length > 1) {
        throw new Rejected("the value is not a record with fields");
      }
      for (int i = 0; i < fields.length; i++) {
        Field field = fields[i];
        Object given = found instanceof Map ? field.in((Map) found) : found;
        Object value = field.type.of(given);
        if (value == WRONG) {
          throw new Rejected("column \"" + field.name + "\" is not of type " + field.label + ": " + shown(given));
        }
        if (value == null && field.notNull) {
          throw new Rejected("column \"" + field.name + "\" is null and must not be");
        }
        values[i] = value;
      }
    }
  }

  /** Janino takes the inherited type of the result. */
  static JsonNode at(JsonNode node, String name) {
    return (JsonNode) node.get(name);
  }

  static JsonNode at(JsonNode node, int place) {
    return (JsonNode) node.get(place);
  }

  static String shown(Object value) {
    String text = value instanceof byte[] ? ((byte[]) value).length + " bytes" : String.valueOf(value);
    text = text.length() > SHOWN_MAX ? text.substring(0, SHOWN_MAX) : text;
    return text.replace('\0', '\uFFFD');
  }

  // --- what is declared ----------------------------------------------------------------------------------------------

  static final class Field {
    final String name;
    final String spelling;
    final String label;
    final boolean notNull;
    final Target type;

    Field(JsonNode field) {
      name = at(field, "name").textValue();
      spelling = at(field, "spelling").isNull() ? null : at(field, "spelling").textValue();
      label = at(field, "label").textValue();
      notNull = at(field, "not_null").booleanValue();
      type = new Target(at(field, "type"));
    }

    static Field[] all(JsonNode nodes) {
      Field[] found = new Field[nodes.size()];
      for (int i = 0; i < found.length; i++) {
        found[i] = new Field(at(nodes, i));
      }
      return found;
    }

    /** By its name, else as it was spelled, else by the one name that differs in case alone. */
    Object in(Map record) {
      Object found = record.get(name);
      if (found != null || record.containsKey(name)) {
        return found;
      }
      if (spelling != null && record.containsKey(spelling)) {
        return record.get(spelling);
      }
      int alike = 0;
      Iterator names = record.entrySet().iterator();
      while (names.hasNext()) {
        Map.Entry each = (Map.Entry) names.next();
        if (name.equalsIgnoreCase(String.valueOf(each.getKey()))) {
          alike = alike + 1;
          found = each.getValue();
        }
      }
      return alike == 1 ? found : null;
    }
  }

  static final class Target {
    static final long YEAR_1 = -62135596800L;
    static final long YEAR_10000 = 253402300800L;
    private final String kind;
    private final int size;
    private final int scale;
    private final Target key;
    private final Target element;
    private final Field[] fields;

    Target(JsonNode type) {
      kind = at(type, "kind").textValue();
      size = type.has("size") ? at(type, "size").intValue() : -1;
      scale = type.has("scale") ? at(type, "scale").intValue() : 0;
      key = type.has("key") ? new Target(at(type, "key")) : null;
      element = type.has("element") ? new Target(at(type, "element")) : null;
      fields = type.has("fields") ? Field.all(at(type, "fields")) : null;
    }

    /** WRONG where the type has no such value. */
    Object of(Object value) {
      if (value == null) {
        return null;
      }
      if (kind.equals("boolean")) {
        return value instanceof Boolean ? value : WRONG;
      }
      if (kind.equals("tinyint") || kind.equals("smallint") || kind.equals("int") || kind.equals("bigint")) {
        return whole(value);
      }
      if (kind.equals("float") || kind.equals("double")) {
        return approximate(value);
      }
      if (kind.equals("decimal")) {
        return decimal(value);
      }
      if (kind.equals("string")) {
        return text(value);
      }
      if (kind.equals("binary")) {
        return value instanceof byte[] ? value : WRONG;
      }
      if (kind.equals("date")) {
        return value instanceof LocalDate && inRange(((LocalDate) value).toEpochDay() * 86400L) ? value : WRONG;
      }
      if (kind.equals("time")) {
        return value instanceof LocalTime && ((LocalTime) value).getNano() % 1000 == 0 ? value : WRONG;
      }
      if (kind.equals("timestamp") || kind.equals("timestamp_ntz")) {
        return moment(value);
      }
      if (kind.equals("array")) {
        return array(value);
      }
      if (kind.equals("map")) {
        return map(value);
      }
      return kind.equals("struct") ? struct(value) : WRONG;
    }

    private Object whole(Object value) {
      if (value instanceof Instant && kind.equals("bigint")) {
        Instant moment = (Instant) value;
        return moment.getNano() % 1000000 == 0 ? (Object) Long.valueOf(moment.toEpochMilli()) : WRONG;
      }
      long number;
      if (value instanceof Integer || value instanceof Long) {
        number = ((Number) value).longValue();
      } else if (value instanceof BigDecimal) {
        try {
          number = ((BigDecimal) value).longValueExact();
        } catch (ArithmeticException error) {
          return WRONG;
        }
      } else {
        return WRONG;
      }
      if (kind.equals("bigint")) {
        return Long.valueOf(number);
      }
      if (kind.equals("int")) {
        return number == (int) number ? (Object) Integer.valueOf((int) number) : WRONG;
      }
      if (kind.equals("smallint")) {
        return number == (short) number ? (Object) Short.valueOf((short) number) : WRONG;
      }
      return number == (byte) number ? (Object) Byte.valueOf((byte) number) : WRONG;
    }

    private Object approximate(Object value) {
      boolean single = kind.equals("float");
      if (value instanceof Float) {
        return single ? value : (Object) Double.valueOf(((Float) value).doubleValue());
      }
      if (!(value instanceof Double || value instanceof Integer || value instanceof Long || value instanceof BigDecimal)) {
        return WRONG;
      }
      double number = ((Number) value).doubleValue();
      if (!single) {
        return Double.isInfinite(number) && !(value instanceof Double) ? WRONG : (Object) Double.valueOf(number);
      }
      float narrow = (float) number;
      boolean lost = Float.isInfinite(narrow) != Double.isInfinite(number) || (narrow == 0.0f && number != 0.0);
      return lost ? WRONG : (Object) Float.valueOf(narrow);
    }

    private Object decimal(Object value) {
      BigDecimal number;
      if (value instanceof BigDecimal) {
        number = (BigDecimal) value;
      } else if (value instanceof Integer || value instanceof Long) {
        number = BigDecimal.valueOf(((Number) value).longValue());
      } else {
        return WRONG;
      }
      try {
        number = number.setScale(scale);
      } catch (ArithmeticException error) {
        return WRONG;
      }
      return number.precision() <= size ? (Object) number : WRONG;
    }

    private Object text(Object value) {
      if (!(value instanceof String)) {
        return WRONG;
      }
      String text = (String) value;
      if (text.indexOf(0) >= 0 || (size >= 0 && text.codePointCount(0, text.length()) > size)) {
        return WRONG;
      }
      return text;
    }

    private static boolean inRange(long seconds) {
      return seconds >= YEAR_1 && seconds < YEAR_10000;
    }

    private Object moment(Object value) {
      Instant moment;
      if (value instanceof Instant) {
        moment = (Instant) value;
      } else if (value instanceof LocalDateTime) {
        moment = ((LocalDateTime) value).toInstant(ZoneOffset.UTC);
      } else {
        return WRONG;
      }
      if (!inRange(moment.getEpochSecond()) || moment.getNano() % 1000 != 0) {
        return WRONG;
      }
      return kind.equals("timestamp") ? (Object) moment : LocalDateTime.ofInstant(moment, ZoneOffset.UTC);
    }

    private Object array(Object value) {
      if (!(value instanceof List)) {
        return WRONG;
      }
      List given = (List) value;
      ArrayList found = new ArrayList(given.size());
      for (int i = 0; i < given.size(); i++) {
        Object each = element.of(given.get(i));
        if (each == WRONG) {
          return WRONG;
        }
        found.add(each);
      }
      return found;
    }

    private Object map(Object value) {
      if (!(value instanceof Map)) {
        return WRONG;
      }
      LinkedHashMap found = new LinkedHashMap();
      Iterator entries = ((Map) value).entrySet().iterator();
      while (entries.hasNext()) {
        Map.Entry each = (Map.Entry) entries.next();
        Object name = key.of(keyed(each.getKey()));
        Object held = element.of(each.getValue());
        if (name == WRONG || name == null || held == WRONG) {
          return WRONG;
        }
        found.put(name, held);
      }
      return found;
    }

    /** Keys of Avro's maps are texts, whatever they stand for; those of Protobuf's may be what no text is. */
    private Object keyed(Object name) {
      boolean isText = name instanceof String;
      if (kind.equals("map") && key.kind.equals("string")) {
        return isText ? name : String.valueOf(name);
      }
      if (!isText) {
        return name;
      }
      try {
        return new BigDecimal((String) name);
      } catch (NumberFormatException error) {
        return name;
      }
    }

    private Object struct(Object value) {
      if (!(value instanceof Map)) {
        return WRONG;
      }
      Object[] found = new Object[fields.length];
      for (int i = 0; i < found.length; i++) {
        found[i] = fields[i].type.of(fields[i].in((Map) value));
        if (found[i] == WRONG) {
          return WRONG;
        }
      }
      return RowFactory.create(found);
    }
  }

  // --- what was written ----------------------------------------------------------------------------------------------

  /** Of one schema. Values are Boolean, Integer, Long, Float, Double, BigDecimal, String, byte[], LocalDate, LocalTime,
   * Instant, LocalDateTime, List, and Map for records and maps. */
  interface Reader {
    Object read(byte[] record, int id);
  }

  static final class Unreadable implements Reader {
    private final String reason;

    Unreadable(String reason) {
      this.reason = reason;
    }

    public Object read(byte[] record, int id) {
      throw new Rejected("schema " + id + " " + reason);
    }
  }

  static String utf8(byte[] bytes) {
    try {
      return StandardCharsets.UTF_8
          .newDecoder()
          .onMalformedInput(CodingErrorAction.REPORT)
          .onUnmappableCharacter(CodingErrorAction.REPORT)
          .decode(ByteBuffer.wrap(bytes))
          .toString();
    } catch (CharacterCodingException error) {
      throw new Rejected("a text of the value is not valid UTF-8");
    }
  }

  static final class AvroReader implements Reader {
    private static final int SPARE_VALUES = 1000;
    private final Schema schema;

    AvroReader(JsonNode node) {
      Schema.Parser parser = new Schema.Parser();
      parser.setValidateDefaults(false);
      JsonNode references = at(node, "references");
      for (int i = 0; i < references.size(); i++) {
        parser.parse(at(at(references, i), 1).textValue());
      }
      schema = parser.parse(at(node, "text").textValue());
    }

    public Object read(byte[] record, int id) {
      BinaryDecoder in = DecoderFactory.get().binaryDecoder(record, HEADER, record.length - HEADER, null);
      try {
        Object found = new Reading(in, record.length + SPARE_VALUES).value(schema, 0);
        if (!in.isEnd()) {
          throw new Rejected("the value has more bytes than schema " + id + " says");
        }
        return found;
      } catch (Rejected rejected) {
        throw rejected;
      } catch (EOFException error) {
        throw new Rejected("the value has fewer bytes than schema " + id + " says");
      } catch (Exception error) {
        throw new Rejected("the value is not of schema " + id + ": " + shown(error.getMessage()));
      }
    }
  }

  /** Of one record, whose values are counted: empty ones take no bytes. */
  static final class Reading {
    private final BinaryDecoder in;
    private int left;

    Reading(BinaryDecoder in, int values) {
      this.in = in;
      this.left = values;
    }

    Object value(Schema schema, int depth) throws Exception {
      left = left - 1;
      if (left < 0 || depth > DEPTH_MAX) {
        throw new Rejected(left < 0 ? "the value has more parts than bytes" : "the value is nested too deeply");
      }
      Schema.Type type = schema.getType();
      if (type == Schema.Type.UNION) {
        int branch = in.readIndex();
        if (branch < 0 || branch >= schema.getTypes().size()) {
          throw new Rejected("the value has a branch of a union that there is not");
        }
        return value((Schema) schema.getTypes().get(branch), depth + 1);
      }
      String logical = schema.getLogicalType() == null ? "" : schema.getLogicalType().getName();
      if (type == Schema.Type.NULL) {
        return null;
      }
      if (type == Schema.Type.BOOLEAN) {
        return Boolean.valueOf(in.readBoolean());
      }
      if (type == Schema.Type.INT) {
        int number = in.readInt();
        if (logical.equals("date")) {
          return LocalDate.ofEpochDay((long) number);
        }
        return logical.equals("time-millis") ? time((long) number, 1000000L) : Integer.valueOf(number);
      }
      if (type == Schema.Type.LONG) {
        return ofLong(in.readLong(), logical);
      }
      if (type == Schema.Type.FLOAT) {
        return Float.valueOf(in.readFloat());
      }
      if (type == Schema.Type.DOUBLE) {
        return Double.valueOf(in.readDouble());
      }
      if (type == Schema.Type.STRING) {
        return utf8(bytes());
      }
      if (type == Schema.Type.BYTES) {
        return ofBytes(bytes(), schema, logical);
      }
      if (type == Schema.Type.FIXED) {
        byte[] found = new byte[checked((long) schema.getFixedSize())];
        in.readFixed(found);
        return ofBytes(found, schema, logical);
      }
      if (type == Schema.Type.ENUM) {
        int place = in.readEnum();
        if (place < 0 || place >= schema.getEnumSymbols().size()) {
          throw new Rejected("the value has a label of an enum that there is not");
        }
        return schema.getEnumSymbols().get(place);
      }
      if (type == Schema.Type.ARRAY) {
        return array(schema.getElementType(), depth);
      }
      return type == Schema.Type.MAP ? map(schema.getValueType(), depth) : record(schema, depth);
    }

    private Object array(Schema element, int depth) throws Exception {
      ArrayList found = new ArrayList();
      for (long count = in.readArrayStart(); count != 0; count = in.arrayNext()) {
        for (long i = 0; i < count; i++) {
          found.add(value(element, depth + 1));
        }
      }
      return found;
    }

    private Object map(Schema element, int depth) throws Exception {
      LinkedHashMap found = new LinkedHashMap();
      for (long count = in.readMapStart(); count != 0; count = in.mapNext()) {
        for (long i = 0; i < count; i++) {
          String name = utf8(bytes());
          found.put(name, value(element, depth + 1));
        }
      }
      return found;
    }

    private Object record(Schema schema, int depth) throws Exception {
      List parts = schema.getFields();
      LinkedHashMap found = new LinkedHashMap(parts.size() * 2);
      for (int i = 0; i < parts.size(); i++) {
        Schema.Field part = (Schema.Field) parts.get(i);
        found.put(part.name(), value(part.schema(), depth + 1));
      }
      return found;
    }

    private byte[] bytes() throws Exception {
      byte[] found = new byte[checked(in.readLong())];
      in.readFixed(found);
      return found;
    }

    private int checked(long length) throws Exception {
      if (length < 0 || length > in.inputStream().available()) {
        throw new EOFException();
      }
      return (int) length;
    }

    private static Object ofLong(long number, String logical) {
      if (logical.equals("time-micros")) {
        return time(number, 1000L);
      }
      boolean local = logical.startsWith("local-timestamp-");
      String unit = local ? logical.substring(6) : logical;
      long parts;
      if (unit.equals("timestamp-millis")) {
        parts = 1000L;
      } else if (unit.equals("timestamp-micros")) {
        parts = 1000000L;
      } else if (unit.equals("timestamp-nanos")) {
        parts = 1000000000L;
      } else {
        return Long.valueOf(number);
      }
      Instant moment =
          Instant.ofEpochSecond(Math.floorDiv(number, parts), Math.floorMod(number, parts) * (1000000000L / parts));
      return local ? (Object) LocalDateTime.ofInstant(moment, ZoneOffset.UTC) : moment;
    }

    private static LocalTime time(long number, long nanos) {
      if (number < 0 || number >= 86400000000000L / nanos) {
        throw new Rejected("the value has a time of day that there is not");
      }
      return LocalTime.ofNanoOfDay(number * nanos);
    }

    private static Object ofBytes(byte[] bytes, Schema schema, String logical) {
      if (logical.equals("decimal")) {
        if (bytes.length == 0) {
          throw new Rejected("the value has a decimal without digits");
        }
        return new BigDecimal(new BigInteger(bytes), ((LogicalTypes.Decimal) schema.getLogicalType()).getScale());
      }
      if (logical.equals("uuid") && bytes.length == 16) {
        ByteBuffer halves = ByteBuffer.wrap(bytes);
        return new java.util.UUID(halves.getLong(), halves.getLong()).toString();
      }
      return bytes;
    }
  }

  /** By the descriptors of a file and of all that it imports, in their order. */
  static final class ProtobufReader implements Reader {
    private final FileDescriptor file;

    ProtobufReader(JsonNode node) throws Exception {
      byte[] bytes = java.util.Base64.getDecoder().decode(at(node, "text").textValue());
      List files = FileDescriptorSet.parseFrom(bytes).getFileList();
      HashMap known = new HashMap();
      FileDescriptor last = null;
      for (int i = 0; i < files.size(); i++) {
        FileDescriptorProto each = (FileDescriptorProto) files.get(i);
        FileDescriptor[] imported = new FileDescriptor[each.getDependencyCount()];
        for (int j = 0; j < imported.length; j++) {
          imported[j] = (FileDescriptor) known.get(each.getDependency(j));
        }
        last = FileDescriptor.buildFrom(each, imported);
        known.put(each.getName(), last);
      }
      file = last;
    }

    public Object read(byte[] record, int id) {
      try {
        CodedInputStream in = CodedInputStream.newInstance(record, HEADER, record.length - HEADER);
        Descriptor type = message(in, id);
        DynamicMessage found = DynamicMessage.parseFrom(type, in);
        return fields(found, 0);
      } catch (Rejected rejected) {
        throw rejected;
      } catch (Exception error) {
        throw new Rejected("the value is not of schema " + id + ": " + shown(error.getMessage()));
      }
    }

    /** Where the message stands in the file: places, each inside of the one before; none are the first one's. */
    private Descriptor message(CodedInputStream in, int id) throws Exception {
      int count = in.readSInt32();
      if (count < 0 || count > DEPTH_MAX) {
        throw new Rejected("the value does not say which message of schema " + id + " it is");
      }
      List among = file.getMessageTypes();
      Descriptor found = null;
      for (int i = 0; i < Math.max(count, 1); i++) {
        int place = count == 0 ? 0 : in.readSInt32();
        if (place < 0 || place >= among.size()) {
          throw new Rejected("the value is of a message that schema " + id + " does not have");
        }
        found = (Descriptor) among.get(place);
        among = found.getNestedTypes();
      }
      return found;
    }

    private static Object fields(Message message, int depth) {
      if (depth > DEPTH_MAX) {
        throw new Rejected("the value is nested too deeply");
      }
      LinkedHashMap found = new LinkedHashMap();
      List all = message.getDescriptorForType().getFields();
      for (int i = 0; i < all.size(); i++) {
        FieldDescriptor field = (FieldDescriptor) all.get(i);
        found.put(field.getName(), of(message, field, depth));
      }
      return found;
    }

    private static Object of(Message message, FieldDescriptor field, int depth) {
      if (field.isMapField()) {
        FieldDescriptor key = field.getMessageType().findFieldByNumber(1);
        FieldDescriptor value = field.getMessageType().findFieldByNumber(2);
        LinkedHashMap found = new LinkedHashMap();
        List entries = (List) message.getField(field);
        for (int i = 0; i < entries.size(); i++) {
          Message entry = (Message) entries.get(i);
          found.put(single(entry.getField(key), key, depth), single(entry.getField(value), value, depth));
        }
        return found;
      }
      if (field.isRepeated()) {
        List given = (List) message.getField(field);
        ArrayList found = new ArrayList(given.size());
        for (int i = 0; i < given.size(); i++) {
          found.add(single(given.get(i), field, depth));
        }
        return found;
      }
      return field.hasPresence() && !message.hasField(field) ? null : single(message.getField(field), field, depth);
    }

    private static Object single(Object value, FieldDescriptor field, int depth) {
      FieldDescriptor.Type type = field.getType();
      if (type == FieldDescriptor.Type.MESSAGE || type == FieldDescriptor.Type.GROUP) {
        return wellKnown((Message) value, depth);
      }
      if (type == FieldDescriptor.Type.UINT32 || type == FieldDescriptor.Type.FIXED32) {
        return Long.valueOf(Integer.toUnsignedLong(((Integer) value).intValue()));
      }
      if (type == FieldDescriptor.Type.UINT64 || type == FieldDescriptor.Type.FIXED64) {
        return new BigDecimal(Long.toUnsignedString(((Long) value).longValue()));
      }
      if (value instanceof ByteString) {
        return ((ByteString) value).toByteArray();
      }
      if (value instanceof EnumValueDescriptor) {
        EnumValueDescriptor label = (EnumValueDescriptor) value;
        if (label.getIndex() < 0) {
          throw new Rejected("the value has a number of an enum without a name: " + label.getNumber());
        }
        return label.getName();
      }
      return value;
    }

    private static Object wellKnown(Message message, int depth) {
      Descriptor type = message.getDescriptorForType();
      String name = type.getFullName();
      if (name.equals("google.protobuf.Timestamp")) {
        long seconds = ((Long) message.getField(type.findFieldByNumber(1))).longValue();
        int nanos = ((Integer) message.getField(type.findFieldByNumber(2))).intValue();
        if (nanos < 0 || nanos > 999999999 || seconds < Target.YEAR_1 || seconds >= Target.YEAR_10000) {
          throw new Rejected("the value has a moment that there is not");
        }
        return Instant.ofEpochSecond(seconds, (long) nanos);
      }
      if (name.startsWith("google.protobuf.") && name.endsWith("Value") && type.getFields().size() == 1) {
        FieldDescriptor wrapped = type.findFieldByNumber(1);
        if (wrapped.getName().equals("value")) {
          return single(message.getField(wrapped), wrapped, depth);
        }
      }
      return fields(message, depth + 1);
    }
  }
}
