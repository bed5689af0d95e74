import com.alibaba.nacos.api.naming.listener.NamingEvent;
import com.alibaba.nacos.api.naming.pojo.Instance;
import java.util.Map;
import java.util.stream.Collectors;

/** One of the programs of the suite `crosswise`; see there for what it does. */
final class Agent {
    public static void main(String[] arguments) throws Exception {
        String service = arguments[2];
        // Only the clients of HTTP beat.
        Map<String, String> lease = Map.of(
                "preserved.heart.beat.interval", "1000", "preserved.heart.beat.timeout", "4000", "preserved.ip.delete.timeout", "8000");
        Instance own = Client.instance(Integer.parseInt(arguments[3]), "DEFAULT", lease);
        Client client = new Client(arguments[0], arguments[1], Map.of());
        client.naming.subscribe(service, event -> say("ports", ((NamingEvent) event).getInstances().stream()
                .filter(Instance::isHealthy)
                .map(instance -> String.valueOf(instance.getPort()))
                .collect(Collectors.joining(" "))));
        client.naming.registerInstance(service, own);
        say("registered", "");
        while (System.in.read() >= 0) {
            continue;
        }
        System.exit(0);
    }

    private static synchronized void say(String what, String more) {
        System.out.println((what + " " + more).trim());
        System.out.flush();
    }
}
