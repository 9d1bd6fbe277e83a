import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.Base64;

import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * What Kafka's own request classes answer when a whole request fails with an error.
 *
 * <p>Reads lines of API key, version, error code and the request's bytes in base 64 from standard input, and prints
 * for each the bytes of the response in base 64.
 */
public class ErrorResponses {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            ApiKeys api = ApiKeys.forId(Integer.parseInt(words[0]));
            short version = Short.parseShort(words[1]);
            Errors error = Errors.forCode(Short.parseShort(words[2]));
            byte[] bytes = words.length > 3 ? Base64.getDecoder().decode(words[3]) : new byte[0];
            ByteBufferAccessor readable = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
            AbstractRequest request = AbstractRequest.parseRequest(api, version, readable).request;
            AbstractResponse response = request.getErrorResponse(0, error.exception());
            System.out.println(encoded(response, version));
        }
    }

    private static String encoded(AbstractResponse response, short version) {
        var cache = new org.apache.kafka.common.protocol.ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(response.data().size(cache, version));
        response.data().write(new ByteBufferAccessor(buffer), cache, version);
        return Base64.getEncoder().encodeToString(buffer.array());
    }
}
