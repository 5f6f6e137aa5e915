# The service and `purser-admin`, without development packages. The lock file fixes every dependency.
FROM node:26.10.0-bookworm AS build
WORKDIR /purser
COPY . .
# `npm ci` builds the dashboard. The second one installs what the service needs at run time, and compiles secp256k1 where no prebuilt binary fits.
RUN npm ci && npm ci --omit=dev --workspace=@purser/server --workspace=@purser/protocol --ignore-scripts && npm rebuild secp256k1

FROM node:26.10.0-bookworm-slim
ENV NODE_ENV=production
WORKDIR /purser
COPY --from=build /purser/package.json /purser/README.md /purser/CONTRIBUTING.md /purser/CHANGELOG.md /purser/SECURITY.md ./
# The service shows the guides.
COPY --from=build /purser/docs docs
COPY --from=build /purser/node_modules node_modules
COPY --from=build /purser/packages/protocol packages/protocol
COPY --from=build /purser/packages/server packages/server
COPY --from=build /purser/packages/dashboard/dist packages/dashboard/dist
RUN install -d -o node -g node /var/lib/purser
USER node
EXPOSE 4100 9464
VOLUME /var/lib/purser
# The metrics port has /healthz in every role; it reads no database. Use /readyz of the API to decide whether a process gets requests.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9464/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# No shell between: the process gets SIGTERM itself.
ENTRYPOINT ["node", "packages/server/src/main.ts"]
