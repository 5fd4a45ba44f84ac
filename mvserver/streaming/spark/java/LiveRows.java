package mvserver;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.VectorUnloader;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.execution.python.streaming.PythonForeachWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;

/**
 * The rows of a task of the live lane, gathered as Arrow and handed to the server when it asks for them.
 *
 * Of the messages to the server, R says that there are rows, B has them, and E is the end with their number. The server
 * answers G to a greeting, T to take what there is, and K when it has all. So rows wait here as long as a commit takes, and a task waits
 * where too many do. It is a Python writer by its class alone: only to those does Spark give rows as they are.
 * Compiled by Janino, which forgets that a private method is synchronized: none here is.
 */
public final class LiveRows extends PythonForeachWriter {
  static final int ROWS_MAX = 20000;
  static final long BYTES_MAX = 4L << 20;
  static final long WAIT_MS = 1000L;
  static final int GREETING_MS = 60000;

  private final StructType columns;
  private final String host;
  private final int port;
  private final String token;
  private transient Gathered gathered;

  public LiveRows(StructType columns, String host, int port, String token) {
    super(null, columns);
    this.columns = columns;
    this.host = host;
    this.port = port;
    this.token = token;
  }

  public boolean open(long partition, long epoch) {
    try {
      gathered = new Gathered(columns, host, port, token, partition, epoch);
    } catch (IOException e) {
      throw new IllegalStateException("the server does not take rows: " + e.getMessage(), e);
    }
    return true;
  }

  public void process(UnsafeRow row) {
    gathered.add(row);
  }

  public void close(Throwable error) {
    if (gathered != null) {
      gathered.close(error);
    }
  }

  /** Of one task. The task adds rows; a thread of its own answers the server. */
  static final class Gathered implements Runnable {
    private final Socket socket;
    private final InputStream in;
    private final DataOutputStream out;
    private final BufferAllocator allocator;
    private final VectorSchemaRoot root;
    private final ArrowWriter writer;
    private final Thread answering;
    private int rows;
    private long bytes;
    private long all;
    private boolean told;
    private boolean over;
    private boolean closing;
    private Throwable failed;

    Gathered(StructType columns, String host, int port, String token, long partition, long epoch) throws IOException {
      socket = new Socket();
      socket.connect(new InetSocketAddress(host, port), GREETING_MS);
      socket.setTcpNoDelay(true);
      in = socket.getInputStream();
      out = new DataOutputStream(socket.getOutputStream());
      allocator = ArrowUtils.rootAllocator().newChildAllocator("live rows", 0L, Long.MAX_VALUE);
      root = VectorSchemaRoot.create(ArrowUtils.toArrowSchema(columns, "UTC", true, false), allocator);
      writer = ArrowWriter.create(root);
      try {
        greet(token, partition, epoch);
      } catch (IOException e) {
        socket.close();
        root.close();
        allocator.close();
        throw e;
      }
      answering = new Thread(this, "live-rows-" + partition);
      answering.setDaemon(true);
      answering.start();
    }

    void greet(String token, long partition, long epoch) throws IOException {
      ByteArrayOutputStream schema = new ByteArrayOutputStream();
      MessageSerializer.serialize(new WriteChannel(Channels.newChannel(schema)), root.getSchema());
      out.write(token.getBytes(StandardCharsets.US_ASCII));
      out.writeLong(partition);
      out.writeLong(epoch);
      out.writeInt(schema.size());
      schema.writeTo(out);
      out.flush();
      socket.setSoTimeout(GREETING_MS);
      if (in.read() != 'G') {
        throw new IOException("it has closed the connection");
      }
      socket.setSoTimeout(0);
    }

    synchronized void add(UnsafeRow row) {
      while (failed == null && (rows >= ROWS_MAX || bytes >= BYTES_MAX)) {
        await();
      }
      check();
      writer.write(row);
      rows++;
      all++;
      bytes += row.getSizeInBytes();
      if (!told) {
        told = true;
        send((byte) 'R');
      }
    }

    public void run() {
      try {
        while (true) {
          int asked = in.read();
          if (asked == 'T') {
            give();
          } else if (asked == 'K') {
            acknowledged();
            return;
          } else {
            throw new IOException("the server has closed the connection");
          }
        }
      } catch (Throwable e) {
        fail(e);
      } finally {
        release();
      }
    }

    synchronized void give() throws IOException {
      ByteArrayOutputStream batch = new ByteArrayOutputStream((int) Math.min(BYTES_MAX, bytes + 4096L));
      writer.finish();
      ArrowRecordBatch made = new VectorUnloader(root).getRecordBatch();
      try {
        MessageSerializer.serialize(new WriteChannel(Channels.newChannel(batch)), made);
      } finally {
        made.close();
      }
      writer.reset();
      rows = 0;
      bytes = 0L;
      told = false;
      notifyAll();
      out.writeByte('B');
      out.writeInt(batch.size());
      batch.writeTo(out);
      out.flush();
    }

    synchronized void acknowledged() {
      over = true;
      notifyAll();
    }

    synchronized void fail(Throwable cause) {
      if (failed == null && !over) {
        failed = cause;
      }
      notifyAll();
    }

    /** By the thread that answers, which alone knows when the memory is not in use any more. */
    synchronized void release() {
      closing = true;
      over = true;
      root.close();
      allocator.close();
      notifyAll();
    }

    void send(byte message) {
      try {
        out.writeByte(message);
        out.flush();
      } catch (IOException e) {
        failed = e;
        check();
      }
    }

    void check() {
      if (failed != null) {
        throw new IllegalStateException("the server does not take rows: " + failed.getMessage(), failed);
      }
      if (closing) {
        throw new IllegalStateException("the server does not take rows any more");
      }
    }

    void await() {
      try {
        wait(WAIT_MS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("the task is ended", e);
      }
    }

    /** Without an error all rows are with the server when it returns. */
    void close(Throwable error) {
      try {
        if (error == null) {
          end();
        }
      } finally {
        try {
          socket.close();
        } catch (IOException e) {
          // It is not used any more: the server judges by the messages it has.
        }
      }
    }

    synchronized void end() {
      while (failed == null && !over && rows > 0) {
        await();
      }
      check();
      try {
        out.writeByte('E');
        out.writeLong(all);
        out.flush();
      } catch (IOException e) {
        failed = e;
      }
      while (failed == null && !over) {
        await();
      }
      if (failed != null) {
        throw new IllegalStateException("the server does not take rows: " + failed.getMessage(), failed);
      }
    }
  }
}
