import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;

import com.alibaba.nacos.api.NacosFactory;
import com.alibaba.nacos.api.exception.NacosException;
import com.alibaba.nacos.api.naming.NamingService;
import com.alibaba.nacos.api.naming.listener.EventListener;
import com.alibaba.nacos.api.naming.listener.NamingEvent;
import com.alibaba.nacos.api.naming.pojo.Instance;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/** A client of the SDK in a namespace, listeners that record, and the server itself, seen without the SDK. */
final class Client implements AutoCloseable {
    static final String HTTP = System.getenv("NOMINA_HTTP");
    static final String GROUP = "DEFAULT_GROUP";
    static final String IP = "10.1.2.3";
    /** Far above what anything here needs on a loaded machine of two cores, and far below the interval at which clients of gRPC poll. */
    static final long DEADLINE_MS = 15_000;

    private static final HttpClient DIRECT = HttpClient.newHttpClient();

    final String namespace;
    final NamingService naming;

    Client(String namespace) throws NacosException {
        this(HTTP, namespace, Map.of());
    }

    Client(String server, String namespace, Map<String, String> more) throws NacosException {
        this.namespace = namespace;
        Properties properties = new Properties();
        properties.setProperty("serverAddr", server);
        properties.setProperty("namespace", namespace);
        more.forEach(properties::setProperty);
        // Versions 3.x fail now and then when two clients are made at the same time: they share unguarded state.
        synchronized (Client.class) {
            naming = NacosFactory.createNamingService(properties);
        }
    }

    static Client inNewNamespace() throws NacosException {
        return new Client(unique("ns"));
    }

    /** Another program in the same namespace. */
    Client another() throws NacosException {
        return new Client(namespace);
    }

    @Override
    public void close() throws NacosException {
        naming.shutDown();
    }

    static String unique(String kind) {
        return kind + "-" + UUID.randomUUID().toString().substring(0, 12);
    }

    /** Calls {@code read} until {@code accept} takes its value, and returns that value; fails with the last one after the deadline. */
    static <T> T until(Callable<T> read, Predicate<T> accept, String what) throws Exception {
        return until(read, accept, what, DEADLINE_MS);
    }

    static <T> T until(Callable<T> read, Predicate<T> accept, String what, long deadlineMs) throws Exception {
        long end = System.nanoTime() + deadlineMs * 1_000_000;
        while (true) {
            T value = read.call();
            if (accept.test(value)) {
                return value;
            }
            if (System.nanoTime() > end) {
                fail("not within " + deadlineMs + " ms: " + what + "; the last value: " + value);
            }
            Thread.sleep(20);
        }
    }

    static Instance instance(int port) {
        return instance(port, "DEFAULT", Map.of());
    }

    static Instance instance(int port, String cluster) {
        return instance(port, cluster, Map.of());
    }

    static Instance instance(int port, String cluster, Map<String, String> metadata) {
        Instance instance = new Instance();
        instance.setIp(IP);
        instance.setPort(port);
        instance.setClusterName(cluster);
        instance.setMetadata(new TreeMap<>(metadata));
        return instance;
    }

    static List<Integer> ports(Collection<Instance> instances) {
        return instances.stream().map(Instance::getPort).sorted().collect(Collectors.toList());
    }

    /** The ports of a service by a query that does not subscribe. */
    List<Integer> queried(String service) throws NacosException {
        return ports(naming.getAllInstances(service, false));
    }

    /** What a listener is told, one list of instances for each event. */
    static final class Told implements EventListener {
        final List<List<Instance>> events = new CopyOnWriteArrayList<>();

        @Override
        public void onEvent(com.alibaba.nacos.api.naming.listener.Event event) {
            events.add(List.copyOf(((NamingEvent) event).getInstances()));
        }

        List<Instance> last() {
            return events.isEmpty() ? null : events.get(events.size() - 1);
        }

        List<Instance> waitFor(Predicate<List<Instance>> accept, String what) throws Exception {
            return until(this::last, last -> last != null && accept.test(last), what);
        }

        List<Instance> waitForPorts(Integer... ports) throws Exception {
            return waitFor(last -> ports(last).equals(List.of(ports)), "the ports are " + List.of(ports));
        }
    }

    /** A call of the server's HTTP API, past the SDK. */
    String direct(String method, String path, String... parameters) throws IOException, InterruptedException {
        StringBuilder query = new StringBuilder("?namespaceId=" + namespace);
        for (int i = 0; i < parameters.length; i += 2) {
            query.append('&').append(parameters[i]).append('=').append(URLEncoder.encode(parameters[i + 1], StandardCharsets.UTF_8));
        }
        URI uri = URI.create("http://" + HTTP + "/nacos/v1/ns" + path + query);
        HttpRequest request = HttpRequest.newBuilder(uri).method(method, HttpRequest.BodyPublishers.noBody()).build();
        HttpResponse<String> answer = DIRECT.send(request, HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), () -> method + " " + uri + ": " + answer.body());
        return answer.body();
    }
}
