/** Prints what a web server answers. */
class Get {
    public static void main(String[] arguments) throws Exception {
        System.out.write(new java.net.URI(arguments[0]).toURL().openStream().readAllBytes());
        System.out.flush();
    }
}
