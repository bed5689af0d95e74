/** What is called. */
public interface Greeter {
    String greeting();
}
