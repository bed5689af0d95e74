import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** A program that is called: it registers itself under its name when its port is open. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
@RestController
class Provider {
    @Value("${greeting}")
    private String greeting;

    @GetMapping("/greeting")
    String greeting() {
        return greeting;
    }

    public static void main(String[] arguments) {
        SpringApplication.run(Provider.class, arguments);
    }
}
