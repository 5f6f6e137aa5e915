# The service and `purser-admin`, without development packages. The lock file fixes every dependency.
ARG BUILD_BASE=node:26.10.0-bookworm
ARG RUN_BASE=node:26.10.0-bookworm-slim
FROM ${BUILD_BASE} AS build
WORKDIR /purser
COPY . .
# `npm ci` builds the dashboard, and `build.ts` the service as it is published: without types to strip, which takes 25 MB of each process. Then what it
# needs at run time is installed, and secp256k1 compiled where no prebuilt binary fits.
RUN npm ci && node build.ts && npm ci --omit=dev --workspace=@purser/server --workspace=@purser/protocol --ignore-scripts && \
  npm rebuild secp256k1 && rm -rf node_modules/@purser

FROM ${RUN_BASE}
ENV NODE_ENV=production
WORKDIR /purser
COPY --from=build /purser/node_modules node_modules
COPY --from=build /purser/packages/server/node_modules packages/server/node_modules
COPY --from=build /purser/packages/server/dist packages/server/dist
RUN install -d -o node -g node /var/lib/purser
USER node
EXPOSE 4100 9464
VOLUME /var/lib/purser
# The metrics port has /healthz in every role; it reads no database. Use /readyz of the API to decide whether a process gets requests.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9464/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# No shell between: the process gets SIGTERM itself.
ENTRYPOINT ["node", "packages/server/dist/main.js"]
