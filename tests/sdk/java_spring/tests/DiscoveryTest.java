import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.client.ServiceInstance;
import org.springframework.cloud.client.discovery.DiscoveryClient;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.web.client.RestTemplate;

/** Programs on Spring Cloud Alibaba find and call each other, one after the other dies. The tests follow each other. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class DiscoveryTest {
    private static final String NAME = "greeter";
    private static final long DEADLINE_MS = 60_000;

    private final String namespace = "ns-" + UUID.randomUUID().toString().substring(0, 12);
    private final Map<String, Process> providers = new HashMap<>();
    private ConfigurableApplicationContext consumer;

    private List<String> settings(String name) {
        return new ArrayList<>(List.of(
                "--spring.application.name=" + name,
                "--spring.cloud.nacos.discovery.server-addr=" + System.getenv("NOMINA_HTTP"),
                "--spring.cloud.nacos.discovery.namespace=" + namespace,
                "--spring.cloud.nacos.discovery.ip=127.0.0.1",
                "--spring.cloud.nacos.config.enabled=false",
                // Instances are read anew for each call, so that a call shows what the client knows.
                "--spring.cloud.loadbalancer.cache.enabled=false",
                "--spring.main.banner-mode=off",
                "--logging.level.root=error"));
    }

    private void provide(String greeting, String... more) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                ProcessHandle.current().info().command().orElse("java"), "-XX:TieredStopAtLevel=1", "-Xshare:auto",
                "-Duser.home=" + System.getProperty("user.home"), "-cp", System.getProperty("java.class.path"), "Provider"));
        command.addAll(settings(NAME));
        command.addAll(List.of(more));
        command.addAll(List.of("--server.address=127.0.0.1", "--server.port=0", "--greeting=" + greeting,
                "--spring.cloud.nacos.discovery.metadata.greeting=" + greeting));
        File log = new File(greeting + ".log");
        providers.put(greeting, new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log).start());
    }

    @BeforeAll
    void start() throws IOException {
        provide("one");
        provide("two");
        consumer = new SpringApplicationBuilder(Consumer.class).web(WebApplicationType.NONE).run(settings("caller").toArray(String[]::new));
    }

    @AfterAll
    void stop() {
        providers.values().forEach(Process::destroyForcibly);
        consumer.close();
    }

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

    private List<ServiceInstance> found() {
        return consumer.getBean(DiscoveryClient.class).getInstances(NAME);
    }

    private List<String> greetings() {
        return found().stream().map(instance -> instance.getMetadata().get("greeting")).sorted().toList();
    }

    private String call() {
        return consumer.getBean(RestTemplate.class).getForObject("http://" + NAME + "/greeting", String.class);
    }

    @Test
    @Order(1)
    void allThatRegisteredAreFound() throws Exception {
        until(this::greetings, List.of("one", "two")::equals, "both are found");
        for (ServiceInstance instance : found()) {
            assertEquals("127.0.0.1", instance.getHost());
            assertEquals(NAME, instance.getServiceId());
            assertEquals("DEFAULT", instance.getMetadata().get("nacos.cluster"));
            assertEquals("true", instance.getMetadata().get("nacos.healthy"));
        }
        assertTrue(consumer.getBean(DiscoveryClient.class).getServices().contains(NAME));
    }

    @Test
    @Order(2)
    void callsGoToAllOfThem() throws Exception {
        List<String> heard = new ArrayList<>();
        until(() -> heard.add(call()), any -> heard.containsAll(List.of("one", "two")), "both have answered");
    }

    @Test
    @Order(3)
    void aKilledProgramIsGoneAndCallsGoOn() throws Exception {
        providers.remove("one").destroyForcibly().waitFor();
        long began = System.nanoTime();
        until(this::greetings, List.of("two")::equals, "one is gone");
        long took = (System.nanoTime() - began) / 1_000_000;
        assertTrue(took < 5_000, "it was gone after " + took + " ms");
        for (int i = 0; i < 20; i++) {
            assertEquals("two", call());
        }
    }

    @Test
    @Order(4)
    void aNewProgramIsFoundByItsCallers() throws Exception {
        provide("three", "--spring.cloud.nacos.discovery.weight=2");
        until(this::greetings, List.of("three", "two")::equals, "three is found");
        until(this::call, "three"::equals, "three has answered");
    }

    @Test
    @Order(5)
    void aProgramThatEndsSignsOff() throws Exception {
        providers.remove("two").destroy();
        until(this::greetings, List.of("three")::equals, "two is gone");
        assertEquals("three", call());
        providers.remove("three").destroy();
        until(this::greetings, List.of()::equals, "three is gone");
    }
}
