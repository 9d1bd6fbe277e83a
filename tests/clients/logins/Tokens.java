import java.io.FileReader;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;

/** Makes, describes and renews a token, logs in by it, and expires it; prints what came of each. */
public class Tokens {
    public static void main(String[] files) throws Exception {
        Properties properties = new Properties();
        try (FileReader reader = new FileReader(files[0])) {
            properties.load(reader);
        }
        try (Admin admin = Admin.create(properties)) {
            CreateDelegationTokenOptions options = new CreateDelegationTokenOptions()
                .renewers(List.of(new KafkaPrincipal("User", "audit")));
            DelegationToken token = admin.createDelegationToken(options).delegationToken().get();
            System.out.println(token.tokenInfo().ownerAsString());
            boolean isTold = admin.describeDelegationToken().delegationTokens().get().contains(token);
            System.out.println(isTold);
            long expiry = admin.renewDelegationToken(token.hmac()).expiryTimestamp().get();
            System.out.println(expiry >= token.tokenInfo().expiryTimestamp());
            properties.put("sasl.mechanism", "SCRAM-SHA-256");
            properties.put("sasl.jaas.config", String.format(
                "org.apache.kafka.common.security.scram.ScramLoginModule required"
                    + " username=\"%s\" password=\"%s\" tokenauth=\"true\";",
                token.tokenInfo().tokenId(), token.hmacAsBase64String()));
            try (Admin byToken = Admin.create(properties)) {
                System.out.println(byToken.listTopics().names().get());
            }
            admin.expireDelegationToken(token.hmac()).expiryTimestamp().get();
            System.out.println(admin.describeDelegationToken().delegationTokens().get());
        }
    }
}
