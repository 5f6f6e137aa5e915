declare module '*.css'
declare module '@fontsource-variable/geist/files/*.woff2'
