import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;

/** What callers and called have in common. */
final class Settings {
    /**
     * How services are registered: {@code interface}, each by itself, as in Dubbo 2; {@code instance}, each program once, as
     * in Dubbo 3; {@code all}, both.
     */
    static DubboBootstrap begin(String application, String namespace, String mode) {
        ApplicationConfig program = new ApplicationConfig(application);
        program.setQosEnable(false);
        program.setRegisterMode(mode);
        RegistryConfig registry = new RegistryConfig("nacos://" + System.getenv("NOMINA_HTTP") + "?namespace=" + namespace);
        // As it comes, Dubbo takes the registry for a place of configurations and metadata too. This server refuses those, and
        // Dubbo does without: it asks the providers themselves.
        return DubboBootstrap.newInstance().application(program).registry(registry);
    }

    private Settings() {}
}
