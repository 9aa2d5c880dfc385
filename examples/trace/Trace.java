/*
 * Events of a Java program, sent to `swathe trace collect` by its protocol (docs/trace.md).
 *
 *   java Trace.java 127.0.0.1 8430
 */
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;

public class Trace implements AutoCloseable {
    private static final DateTimeFormatter DATE =
            DateTimeFormatter.ofPattern("yyyyMMddHHmmss.SSSSSS").withZone(ZoneOffset.UTC);

    private final Socket socket;
    private final OutputStream out;
    private final String program;
    private final String host = InetAddress.getLocalHost().getHostName();
    private final long pid = ProcessHandle.current().pid();

    /** Connect to a collector. */
    public Trace(String collector, int port, String program) throws IOException {
        this.program = program;
        socket = new Socket(collector, port);
        out = socket.getOutputStream();
        BufferedReader in = new BufferedReader(
                new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        String token = System.getenv().getOrDefault("SWATHE_TRACE_TOKEN", "-");
        send("SWATHE-TRACE 1 " + host + " " + pid + " " + token);
        String answer = in.readLine();
        if (!"OK".equals(answer)) {
            socket.close();
            throw new IOException("expected OK from the collector, found " + answer);
        }
        Thread clock = new Thread(() -> answerClock(in));
        clock.setDaemon(true);
        clock.start();
    }

    /** Send an event: its name, then pairs of key and value. */
    public void event(String name, Object... fields) throws IOException {
        StringBuilder line = head(name).append(" PID=").append(pid)
                .append(" THREAD=").append(Thread.currentThread().getId());
        for (int at = 0; at + 1 < fields.length; at += 2) {
            line.append(' ').append(fields[at]).append('=').append(quote(fields[at + 1].toString()));
        }
        send(line.toString());
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private StringBuilder head(String name) {
        return new StringBuilder("DATE=").append(DATE.format(Instant.now()))
                .append(" HOST=").append(quote(host)).append(" PROG=").append(quote(program))
                .append(" LVL=Usage NL.EVNT=").append(name);
    }

    /** Values with a space, quotes or other bytes stand in quotes. */
    private static String quote(String value) {
        if (value.matches("[!-~&&[^\"\\\\=]]+")) {
            return value;
        }
        return '"' + value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n")
                .replace("\r", "\\r").replace("\t", "\\t") + '"';
    }

    private synchronized void send(String line) throws IOException {
        out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        out.flush();
    }

    /** The collector asks for the time, to compare the clocks. */
    private void answerClock(BufferedReader in) {
        try {
            String line;
            while ((line = in.readLine()) != null) {
                Instant now = Instant.now();
                if (line.startsWith("CLOCK ")) {
                    send(head("CLOCK_REPLY").append(" ECHO=").append(line.substring(6))
                            .append(" RECEIVED=")
                            .append(now.getEpochSecond() * 1_000_000_000L + now.getNano()).toString());
                }
            }
        } catch (IOException end) {
            // The connection is closed: nobody asks any more.
        }
    }

    public static void main(String[] words) throws Exception {
        try (Trace trace = new Trace(words[0], Integer.parseInt(words[1]), "reduce")) {
            trace.event("REDUCE_START", "GRANULE", "night 12");
            Thread.sleep(5);
            trace.event("REDUCE_END", "GRANULE", "night 12", "BYTES", 25920, "RESULT", "ok");
        }
    }
}
