"""A jar whose classes implement the interfaces of Lenses, compiled against the jar that Lenses publishes."""

from __future__ import annotations

from functools import cache

from mvserver.demo.jars import module, resolve
from spark_sinks.jars import LENSES_FUNCTIONS, default_ivy_home
from tests.java_functions.compiled import compiled

SOURCE = """
package farm;
import io.lenses.sql.udf.*;
import io.lenses.sql.udf.datatype.*;
import io.lenses.sql.udf.value.*;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
public class All {
  public static class Fahrenheit implements UserDefinedFunction1 {
    public String name() { return "fahrenheit"; }
    public DataType typeMapping(DataType given) throws UdfException {
      if (!given.isDouble()) { throw new UdfException("a DOUBLE is wanted, and not " + given.name); }
      return DataType.ltDouble();
    }
    public Value evaluate(Value given) throws UdfException {
      return new DoubleValue(((Double) given.toDoubleValue().get()).doubleValue() * 1.8 + 32);
    }
  }
  public abstract static class Above implements UserDefinedFunction1 {
    public String name() { return "above"; }
    public DataType typeMapping(DataType given) throws UdfException { return DataType.ltOptional(DataType.ltString()); }
    public Value evaluate(Value given) throws UdfException {
      if (given.get() == null) { return OptionalValue.of(new StringValue("nothing")); }
      OptionalValue optional = (OptionalValue) given;
      String text = optional.toStringValue().get().toString();
      if (text.isEmpty()) { return OptionalValue.empty(DataType.ltString()); }
      return new StringValue(said(text));
    }
    protected abstract String said(String text);
  }
  public static class Below extends Above { protected String said(String text) { return text + "!"; } }
  public static class Times implements UserDefinedFunction2 {
    public String name() { return "times"; }
    public DataType typeMapping(DataType a, DataType b) { return DataType.ltBigDecimal(); }
    public Value evaluate(Value a, Value b) throws UdfException {
      BigDecimal left = (BigDecimal) a.toBigDecimalValue().get();
      return new BigDecimalValue(left.multiply((BigDecimal) b.toBigDecimalValue().get()));
    }
  }
  public static class Between implements UserDefinedFunction3 {
    public String name() { return "between"; }
    public DataType typeMapping(DataType a, DataType b, DataType c) { return DataType.ltBoolean(); }
    public Value evaluate(Value a, Value b, Value c) throws UdfException {
      long x = ((Long) a.get()).longValue();
      return new BooleanValue(((Long) b.get()).longValue() <= x && x <= ((Long) c.get()).longValue());
    }
  }
  public static class Names implements UserDefinedFunctionVarArg {
    public String name() { return "names"; }
    public DataType typer(List types) { return DataType.ltRepeated(DataType.ltString()); }
    public Value evaluate(List values) throws UdfException {
      List found = new ArrayList();
      for (int i = 0; i < values.size(); i++) {
        found.add(new StringValue(((Value) values.get(i)).getDataType().name));
      }
      return new RepeatedValue(found, DataType.ltString());
    }
  }
  public static class Echo implements UserDefinedFunction1 {
    public String name() { return "echo"; }
    public DataType typeMapping(DataType given) { return given; }
    public Value evaluate(Value given) { return given; }
  }
  public static class Raises implements UserDefinedFunction1 {
    public String name() { return "raises"; }
    public DataType typeMapping(DataType given) { return given; }
    public Value evaluate(Value given) throws UdfException {
      if (given.get().equals("lie")) { return new LongValue(1L); }
      throw new UdfException("a bad " + given.get());
    }
  }
  public static class Mean implements UserDefinedTableAggregateFunction {
    private long least = 0L;
    public String name() { return "mean"; }
    public DataType typer(DataType given) throws UdfException {
      if (!given.isLong()) { throw new UdfException("a LONG is wanted"); }
      return DataType.ltDouble();
    }
    public void init(Value[] arguments) {
      least = arguments.length == 0 ? 0L : ((Integer) arguments[0].get()).longValue();
    }
    public Value empty() { return StructValue.ofTwo("sum", new LongValue(0L), "count", new LongValue(0L)); }
    public Value add(Value key, Value state, Value added) throws UdfException {
      long given = ((Long) added.toLongValue().get()).longValue();
      return given < least ? state : moved(state, given, 1L);
    }
    public Value subtract(Value key, Value state, Value taken) throws UdfException {
      return moved(state, -((Long) taken.toLongValue().get()).longValue(), -1L);
    }
    private Value moved(Value state, long sum, long count) throws UdfException {
      return StructValue.ofTwo(
          "sum", new LongValue(of(state, "sum") + sum), "count", new LongValue(of(state, "count") + count));
    }
    static long of(Value state, String field) throws UdfException {
      return ((Long) state.asStructValue().getField(field).get()).longValue();
    }
    public Value merge(Value key, Value first, Value second) throws UdfException {
      return moved(first, of(second, "sum"), of(second, "count"));
    }
    public Optional finalStep() {
      return Optional.of(new FinalStep() {
        public Value calulate(Value state) throws UdfException {
          long count = of(state, "count");
          return count == 0 ? (Value) OptionalValue.empty(DataType.ltDouble())
              : (Value) new DoubleValue((double) of(state, "sum") / count);
        }
      });
    }
  }
  public static class Last implements UserDefinedAggregateFunction {
    public String name() { return "last"; }
    public DataType typer(DataType given) { return given; }
    public Value empty() { return new StringValue(""); }
    public Value add(Value key, Value state, Value added) throws UdfException {
      return new StringValue(state.toStringValue().get() + "," + added.toStringValue().get());
    }
    public Value merge(Value key, Value first, Value second) { return second; }
  }
  static class Hidden extends Fahrenheit { }
}
"""


@cache
def interfaces() -> str:
    """The path of the jar of the interfaces, fetched where it is not there."""
    if not LENSES_FUNCTIONS.files(None):
        names = tuple(jar.coordinates for jar in LENSES_FUNCTIONS.jars)
        resolve(module(names), names, default_ivy_home())
    return str(LENSES_FUNCTIONS.files(None)[0])


def jar() -> bytes:
    return compiled(SOURCE, (interfaces(),))
