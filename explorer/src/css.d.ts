// esbuild bundles style sheets into page.css.
declare module "*.css";
