import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * What Kafka's own message classes say about encoded messages.
 *
 * <p>{@code apis} prints one line per API: key, name, oldest and newest version, and for each
 * version its request and response header versions. {@code messages} reads cases from standard
 * input (class name in UTF, int16 version, int32 size, bytes) and answers each with two blocks
 * (int32 size, bytes): the re-encoded message (nothing
 * where Kafka can only read it) and its fields as JSON (of records only the size). A message that Kafka
 * cannot read is answered with size -1 and the reason as the second block. Bytes behind the message
 * are ignored, as the broker does.
 */
public class MessageOracle {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("apis")) {
            printApis();
        } else {
            answerMessages();
        }
    }

    private static void printApis() {
        for (ApiMessageType type : ApiMessageType.values()) {
            StringBuilder line = new StringBuilder();
            short oldest = type.lowestSupportedVersion();
            short newest = type.highestSupportedVersion(true);
            line.append(type.apiKey()).append(' ').append(type.name())
                .append(' ').append(oldest).append(' ').append(newest)
                .append(' ').append(type.highestSupportedVersion(false));
            for (short version = oldest; version <= newest; version++) {
                line.append(' ').append(type.requestHeaderVersion(version))
                    .append('/').append(type.responseHeaderVersion(version));
            }
            System.out.println(line);
        }
    }

    private static void answerMessages() throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        while (true) {
            String name;
            try {
                name = in.readUTF();
            } catch (EOFException end) {
                break;
            }
            short version = in.readShort();
            byte[] encoded = new byte[in.readInt()];
            in.readFully(encoded);
            try {
                answer(out, name, version, ByteBuffer.wrap(encoded));
            } catch (ReflectiveOperationException | RuntimeException failure) {
                out.writeInt(-1);
                writeBlock(out, String.valueOf(failure).getBytes(StandardCharsets.UTF_8));
            }
        }
        out.flush();
    }

    private static void answer(DataOutputStream out, String name, short version, ByteBuffer encoded)
            throws ReflectiveOperationException, IOException {
        Class<?> messageClass = Class.forName("org.apache.kafka.common.message." + name);
        ApiMessage message = (ApiMessage) messageClass.getConstructor().newInstance();
        message.read(new ByteBufferAccessor(encoded), version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer rewritten;
        try {
            rewritten = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(rewritten), cache, version);
        } catch (RuntimeException unwritable) {
            rewritten = ByteBuffer.allocate(0); // unknown tagged fields out of order, for instance
        }
        Method toJson = Class.forName(messageClass.getName() + "JsonConverter")
            .getMethod("write", messageClass, short.class, boolean.class);
        Object json = toJson.invoke(null, message, version, false);
        writeBlock(out, rewritten.array());
        writeBlock(out, json.toString().getBytes(StandardCharsets.UTF_8));
    }

    private static void writeBlock(DataOutputStream out, byte[] block) throws IOException {
        out.writeInt(block.length);
        out.write(block);
    }
}
