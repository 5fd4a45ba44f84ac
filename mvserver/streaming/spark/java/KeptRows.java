package mvserver;

import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Nil$;
import scala.reflect.ClassTag$;

/**
 * The rows of one batch after another under one plan: what is given last is what the next job reads.
 *
 * They go to the task with their partition, and so also to a task on another machine. A job has what was given before it
 * began; who gives waits for its end.
 */
public final class KeptRows extends RDD {
  private final StructType columns;
  private final String zone;
  private final boolean largeTypes;
  private final transient Piece piece;

  public KeptRows(SparkContext context, StructType columns, String zone, boolean largeTypes) {
    super(context, (scala.collection.immutable.Seq) Nil$.MODULE$, ClassTag$.MODULE$.apply(InternalRow.class));
    this.columns = columns;
    this.zone = zone;
    this.largeTypes = largeTypes;
    this.piece = new Piece();
  }

  /** One record batch of Arrow, without its schema. */
  public void give(byte[] rows) {
    piece.rows = rows;
  }

  public Partition[] getPartitions() {
    return new Partition[] {piece};
  }

  public scala.collection.Iterator compute(Partition partition, TaskContext context) {
    scala.collection.Iterator batches = scala.collection.Iterator$.MODULE$.single(((Piece) partition).rows);
    return ArrowConverters$.MODULE$.fromBatchIterator(batches, columns, zone, true, largeTypes, context);
  }

  static final class Piece implements Partition {
    volatile byte[] rows;

    public int index() {
      return 0;
    }

    public boolean org$apache$spark$Partition$$super$equals(Object other) {
      return this == other;
    }
  }
}
