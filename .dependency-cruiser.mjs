import { featureEdges } from './feature-edges.mjs'

/** Who may import whom (docs/architecture.md). A new edge between features is a line in feature-edges.mjs. */
const server = '^packages/server/src/'
const features = `${server}features/`

/** Inside the server, from the floor up: a layer imports itself and what stands before it. */
const layers = [
  ['platform', ['platform']],
  ['chain', ['chain', 'platform']],
  ['custody', ['custody', 'platform', 'chain']],
  ['partners', ['partners', 'platform', 'chain']],
  ['files', ['files', 'platform']],
  ['archive', ['archive', 'files', 'platform']],
  ['monitoring', ['monitoring', 'chain', 'platform']],
]

const layerRules = layers.map(([layer, allowed]) => ({
  name: `${layer}-imports-only-below`,
  severity: 'error',
  from: { path: `${server}${layer}/`, pathNot: '\\.test\\.ts$' },
  to: { path: server, pathNot: allowed.map((name) => `${server}${name}/`) },
}))

/** What each feature may import: its own folder, and the index of the features that it lists in `featureEdges`. */
const featureRules = Object.entries(featureEdges).map(([feature, others]) => ({
  name: `${feature}-imports-other-features-only-along-listed-edges`,
  severity: 'error',
  from: { path: `${features}${feature}/`, pathNot: '\\.test\\.ts$' },
  to: {
    path: features,
    pathNot: [`${features}${feature}/`, ...others.map((other) => `${features}${other}/index\\.ts$`)],
  },
}))

/** A feature that `featureEdges` does not list imports no other. */
const unlistedFeature = {
  name: 'every-feature-is-listed',
  severity: 'error',
  from: { path: features, pathNot: Object.keys(featureEdges).map((feature) => `${features}${feature}/`) },
  to: { path: features },
}

export default {
  forbidden: [
    {
      name: 'protocol-is-pure',
      severity: 'error',
      comment: 'packages/protocol runs in browsers: no package but @noble/hashes, no node: module, nothing of ours.',
      from: { path: '^packages/protocol/src/', pathNot: '\\.test\\.ts$' },
      to: { pathNot: ['^packages/protocol/src/', 'node_modules/@noble/hashes'] },
    },
    {
      name: 'sdk-needs-the-protocol-alone-at-run-time',
      severity: 'error',
      from: { path: '^packages/sdk/src/', pathNot: ['^packages/sdk/src/ledgers/', '\\.test\\.ts$'] },
      to: {
        pathNot: [
          '^packages/(sdk|protocol)/src/',
          'node_modules/(@types/)?express',
          'node_modules/(hono|fastify|next)/',
        ],
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'ledgers-need-node-alone-besides',
      severity: 'error',
      from: { path: '^packages/sdk/src/ledgers/' },
      to: { pathNot: ['^packages/(sdk|protocol)/src/'], dependencyTypesNot: ['core', 'type-only'] },
    },
    {
      name: 'ledgers-are-not-for-browsers',
      severity: 'error',
      from: { path: '^packages/sdk/src/', pathNot: '^packages/sdk/src/ledgers/' },
      to: { path: '^packages/sdk/src/ledgers/' },
    },
    {
      name: 'the-plain-client-imports-nothing',
      severity: 'error',
      from: {
        path: '^packages/sdk/src/',
        pathNot: ['^packages/sdk/src/(agents|ledgers|middleware|pay|seal|webhooks)/', '\\.test\\.ts$'],
      },
      to: { path: '^packages/protocol/', pathNot: '^packages/protocol/src/confidential\\.ts$' },
    },
    {
      name: 'the-command-line-needs-the-sdk-and-the-protocol-alone',
      severity: 'error',
      comment: 'packages/cli runs from npm with nothing else to install: Node, the SDK, the protocol.',
      from: { path: '^packages/cli/src/', pathNot: '\\.test\\.ts$' },
      to: { pathNot: ['^packages/(cli|sdk|protocol)/src/'], dependencyTypesNot: ['core'] },
    },
    {
      name: 'the-mcp-server-needs-the-sdk-the-protocol-the-login-and-the-official-sdk-alone',
      severity: 'error',
      comment: 'Of packages/cli only its index: the key that purser login keeps, and the version of a package.',
      from: { path: '^packages/mcp/src/', pathNot: '\\.test\\.ts$' },
      to: {
        pathNot: [
          '^packages/(mcp|sdk|protocol)/src/',
          '^packages/cli/src/index\\.ts$',
          'node_modules/@modelcontextprotocol/(server|node)/',
        ],
        dependencyTypesNot: ['core'],
      },
    },
    {
      name: 'surfaces-meet-the-server-over-http',
      severity: 'error',
      from: { path: '^packages/(sdk|cli|mcp|dashboard|reference)/src/' },
      to: { path: '^packages/server/' },
    },
    {
      name: 'only-operator-commands-take-the-command-framework',
      severity: 'error',
      comment: 'purser and purser-admin are programs of one framework (decision 0175).',
      from: { path: server, pathNot: [`${server}admin/`, '\\.test\\.ts$'] },
      to: { path: '^packages/(cli|sdk)/' },
    },
    {
      name: 'operator-commands-take-the-framework-alone',
      severity: 'error',
      from: { path: `${server}admin/`, pathNot: '\\.test\\.ts$' },
      to: { path: '^packages/(cli|sdk)/', pathNot: '^packages/cli/src/program\\.ts$' },
    },
    {
      name: 'features-import-only-types-of-ports',
      severity: 'error',
      comment: 'Errors are a table, and the cost of a transaction is computed from fees that a port has read.',
      from: { path: features, pathNot: '\\.test\\.ts$' },
      to: {
        path: `${server}(chain|custody|partners)/`,
        pathNot: [`${server}(chain|custody|partners)/errors\\.ts$`, `${server}chain/fees/costs\\.ts$`],
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'features-import-only-the-ports-of-partners',
      severity: 'error',
      comment: 'No feature names a partner: a new one is a file in partners and a line in adapters.ts.',
      from: { path: features, pathNot: '\\.test\\.ts$' },
      to: { path: `${server}partners/`, pathNot: `${server}partners/(\\w+/port|errors)\\.ts$` },
    },
    {
      name: 'partners-import-only-types-of-chain',
      severity: 'error',
      from: { path: `${server}partners/`, pathNot: '\\.test\\.ts$' },
      to: { path: `${server}chain/`, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'only-deps-imports-custody',
      severity: 'error',
      from: { path: server, pathNot: [`${server}deps\\.ts$`, `${server}custody/`, `${server}admin/`, '\\.test\\.ts$'] },
      to: { path: `${server}custody/`, pathNot: `${server}custody/errors\\.ts$`, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'one-file-names-the-http-library',
      severity: 'error',
      from: { path: server, pathNot: `${server}platform/http/server\\.ts$` },
      to: { path: 'node_modules/fastify' },
    },
    {
      name: 'one-folder-names-the-driver',
      severity: 'error',
      from: { path: server, pathNot: `${server}platform/db/(db|pool|probe)\\.ts$` },
      to: { path: 'node_modules/pg/' },
    },
    {
      name: 'two-files-name-the-network-client',
      severity: 'error',
      comment:
        '`outbound` is for URLs of the operator, `guarded-connections` for URLs of customers. `undici` loads what both use.',
      from: {
        path: server,
        pathNot: [`${server}platform/(outbound|guarded-connections|undici)\\.ts$`, '\\.test\\.ts$'],
      },
      to: { path: ['node_modules/undici/', `${server}platform/undici\\.ts$`] },
    },
    {
      name: 'viem-clients-stay-in-chain-and-custody',
      severity: 'error',
      from: { path: server, pathNot: [`${server}(chain|custody)/`, '\\.test\\.ts$'] },
      to: { path: 'node_modules/viem/' },
    },
    {
      name: 'tempo-codec-is-loaded-when-it-is-needed',
      severity: 'error',
      comment:
        'viem/tempo is 1,300 modules and 50 MB of memory, which a server without Tempo transactions does not need.',
      from: { path: server, pathNot: '\\.test\\.ts$' },
      to: { path: 'node_modules/viem/.*tempo', dynamic: false, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-circles',
      severity: 'error',
      comment: 'Type-only imports count.',
      from: { path: '^packages/[^/]+/src/', pathNot: '\\.test\\.ts$' },
      to: { circular: true },
    },
    {
      name: 'no-circles-at-run-time',
      severity: 'error',
      from: { path: '^packages/', pathNot: '\\.test\\.ts$' },
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    ...layerRules,
    ...featureRules,
    unlistedFeature,
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    exclude: { path: ['node_modules/.*/node_modules', '/dist/', 'generated'] },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'require', 'node', 'default'] },
  },
}
