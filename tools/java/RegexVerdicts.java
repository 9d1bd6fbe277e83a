import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.util.function.Function;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Says what expressions of standard input match: a line holds dialect, expression and texts, and its answer
 * either "error" and a description or "texts" and a result for each. The fields are quoted as in URLs, with tabs between.
 *
 * The dialects are "re2j" and "java", whose results are "no" or the groups of a match of the whole text, and
 * "principal", for rules of ssl.principal.mapping.rules, whose results are principals or "no".
 */
public class RegexVerdicts {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(verdict(line.split("\t", -1)));
            System.out.flush();
        }
    }

    private static String verdict(String[] fields) {
        Function<String, String> results;
        try {
            results = results(fields[0], decoded(fields[1]));
        } catch (com.google.re2j.PatternSyntaxException error) {
            return "error\t" + encoded(error.getDescription());
        } catch (java.util.regex.PatternSyntaxException error) {
            return "error\t" + encoded(error.getDescription());
        } catch (IllegalArgumentException error) {
            return "error\t" + encoded(String.valueOf(error.getMessage()));
        } catch (StackOverflowError | RuntimeException error) {
            return "error\t" + encoded(error.toString());
        }
        StringBuilder answer = new StringBuilder("texts");
        for (int i = 2; i < fields.length; i++) {
            answer.append('\t').append(results.apply(decoded(fields[i])));
        }
        return answer.toString();
    }

    private static Function<String, String> results(String dialect, String expression) {
        if (dialect.equals("re2j")) {
            com.google.re2j.Pattern pattern = com.google.re2j.Pattern.compile(expression);
            return text -> pattern.matcher(text).matches() ? "yes" : "no";
        }
        if (dialect.equals("java")) {
            java.util.regex.Pattern pattern = java.util.regex.Pattern.compile(expression);
            return text -> groups(pattern.matcher(text));
        }
        SslPrincipalMapper mapper = SslPrincipalMapper.fromRules(expression);
        return text -> {
            try {
                return "yes," + encoded(mapper.getName(text));
            } catch (java.io.IOException | RuntimeException noRule) {
                return "no";
            }
        };
    }

    private static String groups(java.util.regex.Matcher matcher) {
        if (!matcher.matches()) {
            return "no";
        }
        StringBuilder groups = new StringBuilder("yes");
        for (int i = 1; i <= matcher.groupCount(); i++) {
            groups.append(',').append(matcher.group(i) == null ? "!" : encoded(matcher.group(i)));
        }
        return groups.toString();
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }
}
