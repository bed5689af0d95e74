import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.File;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.function.Predicate;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;
import org.apache.dubbo.rpc.RpcException;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Programs on Dubbo find and call each other, while one after the other dies. */
class DiscoveryTest {
    private static final long DEADLINE_MS = 60_000;

    private final String namespace = "ns-" + UUID.randomUUID().toString().substring(0, 12);
    private final Map<String, Process> providers = new HashMap<>();

    private static <T> T until(Callable<T> read, Predicate<T> accept, String what) throws Exception {
        long end = System.nanoTime() + DEADLINE_MS * 1_000_000;
        while (true) {
            T value = read.call();
            if (accept.test(value)) {
                return value;
            }
            if (System.nanoTime() > end) {
                fail("not within " + DEADLINE_MS + " ms: " + what + "; the last value: " + value);
            }
            Thread.sleep(20);
        }
    }

    private void provide(String mode, String protocol, String greeting) throws Exception {
        File log = new File(mode + "-" + greeting + ".log");
        // Dubbo looks for a free port by itself, but two programs that start at the same time find the same one.
        int port;
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        // They are called at the machine's own address: Dubbo takes no loopback address for one at which others can call.
        ProcessBuilder provider = new ProcessBuilder(
                ProcessHandle.current().info().command().orElse("java"), "-XX:TieredStopAtLevel=1",
                "-Duser.home=" + System.getProperty("user.home"), "-cp", System.getProperty("java.class.path"),
                "Provider", namespace, mode, protocol, String.valueOf(port), greeting);
        providers.put(greeting, provider.redirectErrorStream(true).redirectOutput(log).start());
    }

    /** How many instances the server has under this name. */
    private int registered(String service) throws Exception {
        URI uri = URI.create("http://" + System.getenv("NOMINA_HTTP") + "/nacos/v1/ns/instance/list?namespaceId=" + namespace
                + "&serviceName=" + service);
        String body = HttpClient.newHttpClient().send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString()).body();
        return body.split("\"instanceId\"", -1).length - 1;
    }

    @ParameterizedTest
    @CsvSource({"interface, dubbo, providers:Greeter::", "instance, tri, greeter"})
    void programsFindAndCallEachOther(String mode, String protocol, String name) throws Exception {
        DubboBootstrap caller = Settings.begin("caller", namespace, mode);
        try {
            provide(mode, protocol, "one");
            provide(mode, protocol, "two");
            ReferenceConfig<Greeter> reference = new ReferenceConfig<>();
            reference.setInterface(Greeter.class);
            reference.setCheck(false);
            reference.setProvidedBy("greeter");
            reference.setParameters(Map.of("migration.step", mode.equals("interface") ? "FORCE_INTERFACE" : "FORCE_APPLICATION"));
            caller.reference(reference).start();
            Greeter greeter = reference.get();

            Set<String> heard = new TreeSet<>();
            until(() -> {
                heard.add(tried(greeter));
                return heard;
            }, all -> all.containsAll(List.of("one", "two")), "both have answered");
            assertEquals(2, registered(name));

            providers.remove("one").destroyForcibly().waitFor();
            long began = System.nanoTime();
            until(() -> registered(name), Integer.valueOf(1)::equals, "one is gone");
            long took = (System.nanoTime() - began) / 1_000_000;
            assertTrue(took < 5_000, "it was gone after " + took + " ms");
            for (int i = 0; i < 20; i++) {
                assertEquals("two", greeter.greeting());
            }

            provide(mode, protocol, "three");
            until(() -> tried(greeter), "three"::equals, "three has answered");

            providers.remove("two").destroy();
            until(() -> registered(name), Integer.valueOf(1)::equals, "two is gone");
            assertEquals("three", greeter.greeting());
        } finally {
            providers.values().forEach(Process::destroyForcibly);
            caller.stop();
        }
    }

    /** An answer, or why there is none: nobody may be there yet. */
    private static String tried(Greeter greeter) {
        try {
            return greeter.greeting();
        } catch (RpcException nobody) {
            return nobody.getMessage();
        }
    }
}
