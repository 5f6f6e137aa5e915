import { globSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type Reporter, type TestSpecification } from 'vitest/node'
import { dealt } from './packages/server/test/shards.ts'

/** Prints the number of tests as plain text in the last line, for logs. */
const closingLine: Reporter = {
  onTestRunEnd(modules) {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    for (const module of modules) for (const test of module.children.allTests()) counts[test.result().state] += 1
    console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped + counts.pending} skipped`)
  },
}

/** Begin first, longest first: a long file that begins last would run alone at the end. */
const longest = [
  'packages/dashboard/test/dashboard.test.ts',
  'packages/server/test/settlement-sim.test.ts',
  'packages/server/test/wallet-sim.test.ts',
  'packages/sdk/test/published.test.ts',
  'packages/server/test/crash/expiries.test.ts',
  'packages/server/test/serve.test.ts',
  'packages/devnet/test/tutorials.test.ts',
  'packages/devnet/test/start.test.ts',
  'packages/server/test/upgrade/rolling-upgrade.test.ts',
  'packages/reference/test/reference.test.ts',
  'packages/server/test/crash/vault-moments.test.ts',
  'packages/server/test/crash/webhook-storm.test.ts',
  'packages/server/test/stories/transfers-gasless-chain.test.ts',
  'packages/server/test/every-operation.test.ts',
  'packages/server/test/crash/fail-over.test.ts',
  'packages/server/test/stories/payment-refunds-reorged.test.ts',
  'packages/server/test/stories/withdrawals-bridge.test.ts',
  'packages/server/test/crash/paused-deliveries.test.ts',
  'packages/server/test/idle-work.test.ts',
  'packages/server/test/crash/transfers.test.ts',
  'packages/server/test/stories/transfers-refunds.test.ts',
  'packages/server/test/crash/restore.test.ts',
  'packages/server/test/stories/settlement-nodes.test.ts',
  'packages/server/test/stories/tempo-outcomes.test.ts',
  'packages/server/test/crash/lagging-standby.test.ts',
  'packages/server/test/crash/vaults.test.ts',
  'packages/server/test/stories/transfers-final.test.ts',
  'packages/server/test/stories/webhooks-load.test.ts',
  'packages/devnet/test/demo.test.ts',
  'packages/server/test/crash/kill.test.ts',
  'packages/server/test/stories/transfers-cctp-attested.test.ts',
  'packages/server/test/files/memory.test.ts',
  'packages/sdk/test/shops-apart-real.test.ts',
  'packages/server/test/stories/transfers-lies.test.ts',
  'packages/server/test/stories/transfers-final-lying.test.ts',
  'packages/server/test/deposits/second-reading.test.ts',
  'packages/server/test/stories/settlement-fairness.test.ts',
  'packages/server/test/stories/withdrawals.test.ts',
  'packages/server/test/stories/transfers-deliveries.test.ts',
  'packages/server/test/stories/listen.test.ts',
  'packages/devnet/test/guides-run.test.ts',
  'packages/server/test/tracing.test.ts',
  'packages/server/src/features/relayer/queue-reads.test.ts',
  'packages/server/test/idle-statements.test.ts',
  'packages/server/test/backup.test.ts',
  'packages/server/test/stories/node-faults.test.ts',
  'packages/server/test/stories/transfers-revoked.test.ts',
  'packages/server/test/stories/tempo-nodes.test.ts',
  'packages/mcp/test/agent.test.ts',
  'packages/server/test/crash/postgres-restart.test.ts',
  'packages/cli/test/operations.test.ts',
  'packages/server/test/stories/transfers-superseded.test.ts',
  'packages/cli/test/login.test.ts',
  'packages/server/test/stories/sweep.test.ts',
  'packages/server/test/crash/sigterm.test.ts',
  'packages/server/test/custody/no-trace.test.ts',
  'packages/server/test/stories/hostile-payers.test.ts',
  'packages/server/test/stories/transfers-lifi.test.ts',
  'packages/server/src/platform/work/work.test.ts',
  'packages/server/test/crash/paused.test.ts',
  'packages/server/test/stories/transfers-cctp.test.ts',
  'packages/sdk/test/guides.test.ts',
  'packages/server/test/stories/tempo-fast-node.test.ts',
  'packages/server/test/stories/keys-rotate.test.ts',
  'packages/cli/test/listen.test.ts',
  'packages/server/test/stories/transfers-partner.test.ts',
  'packages/server/src/features/wallets/large-tables.test.ts',
  'packages/server/test/stories/funds-approvals.test.ts',
  'packages/server/test/stories/policies-four-processes.test.ts',
  'packages/devnet/test/postgres.test.ts',
  'packages/server/src/features/wallets/screening/long-traces.test.ts',
  'packages/server/test/stories/sweep-tempo.test.ts',
  'packages/server/src/files/contract.test.ts',
  'packages/python/test/python.test.ts',
  'packages/devnet/test/official-clients.test.ts',
  'packages/server/src/chain/rpc/rpc.test.ts',
  'packages/mcp/test/conformance.test.ts',
  'packages/server/test/due-lists.test.ts',
  'packages/server/test/stories/approvals.test.ts',
  'packages/server/test/stories/facilitator-outcomes.test.ts',
  'packages/server/test/stories/sign-in-limits.test.ts',
  'packages/server/test/deposits/kills.test.ts',
  'packages/server/test/stories/payment-refunds.test.ts',
  'packages/server/test/stories/wallet-payments-hostile.test.ts',
  'packages/server/test/stories/wallet-payments-policy.test.ts',
  'packages/server/test/stories/first-node.test.ts',
  'packages/server/test/stories/tempo-refused.test.ts',
  'packages/server/test/stories/funds.test.ts',
  'packages/server/test/stories/vault-stream-ends.test.ts',
  'packages/server/test/stories/vault-stream.test.ts',
  'packages/server/src/chain/lanes/fence.test.ts',
  'packages/server/test/stories/wallet-payments.test.ts',
  'packages/server/test/stories/transfers-l1-fee.test.ts',
  'packages/sdk/test/middleware-sessions.test.ts',
  'packages/server/src/chain/lanes/anvil.test.ts',
  'packages/server/test/stories/transfers-to-tempo.test.ts',
  'packages/server/test/stories/vaults.test.ts',
  'packages/server/test/stories/tempo-pay.test.ts',
  'packages/server/test/stories/pay.test.ts',
  'packages/devnet/test/permit2-refunds.test.ts',
  'packages/server/test/stories/webhooks-events.test.ts',
  'packages/server/src/files/s3-memory.test.ts',
  'packages/server/src/features/wallets/screening/screening.test.ts',
  'packages/server/test/stories/transfers-gasless.test.ts',
  'packages/server/test/stories/quotas-three-processes.test.ts',
  'packages/server/test/stories/hostile-nodes.test.ts',
  'packages/server/test/stories/transfers-two-nodes.test.ts',
  'packages/server/src/features/wallets/deposits/rollups.test.ts',
  'packages/server/test/stories/wallets-at-once.test.ts',
  'packages/server/test/payment-months.test.ts',
  'packages/server/src/features/wallets/screening/follow-taint.test.ts',
  'packages/server/src/partners/routing/mutated-calls.test.ts',
]

/** These measure or change what belongs to a whole process: its memory, its environment. */
const ownProcess = [
  'packages/server/src/custody/aws-kms.test.ts',
  'packages/server/src/platform/http/http.test.ts',
  'packages/server/src/platform/memory.test.ts',
  'packages/server/test/stories/custody-unavailable.test.ts',
]

/** These load the dashboard's TSX, which Node does not: Vite's runner loads their modules. */
const tsx = ['packages/dashboard/test/{unknown-outcomes,values,vaults}.test.ts']

/** Pure functions, and single features on a database. */
const quick = ['packages/{protocol,server}/src/**/*.test.ts', 'packages/{sdk,mcp}/test/*.test.ts']

/** Beside those of `quick`, but with a chain, another program, a large database, or many seconds of computing. */
const slowBesideQuick = [
  'packages/mcp/test/{agent,conformance,http,lost-answers,message-limits,open-calls,pay,usage}.test.ts',
  'packages/protocol/src/{merkle,seal-verify}.test.ts',
  'packages/sdk/test/{agents,delivery-real,examples,guides,ledgers,ledgers-crash,middleware,middleware-cors,middleware-delivery,middleware-mpp}.test.ts',
  'packages/sdk/test/{middleware-registry,middleware-sessions,middleware-settle,mppx-facilitated,paid-tool,published,real-server}.test.ts',
  'packages/sdk/test/{sessions-real,shops-apart-real,vault-files}.test.ts',
  'packages/server/src/**/*-anvil.test.ts',
  'packages/server/src/admin/admin.test.ts',
  'packages/server/src/chain/lanes/{anvil,crash,fence,lanes}.test.ts',
  'packages/server/src/chain/rpc/{long-receipts,rpc,send}.test.ts',
  'packages/server/src/custody/{custody,mpp-secrets,rotate-kek,service-seal,tamper,wallet-keys}.test.ts',
  'packages/server/src/features/{billing/routes,registry/registry,relayer/{queue,queue-reads},webhooks/{webhooks,listen/listeners}}.test.ts',
  'packages/server/src/features/organisations/{audit-log,key-authority,members,shared-quotas}.test.ts',
  'packages/server/src/features/payments/{challenge,mpp/verify,rollups/rollups}.test.ts',
  'packages/server/src/features/vaults/{counts,lifecycle,quota,seal,vaults,files/{files,link,reserve,upload},stream/{replay,streams},tokens/tokens}.test.ts',
  'packages/server/src/features/wallets/{byo,large-tables,children/children,deposits/rollups,managed/managed,policy/usage}.test.ts',
  'packages/server/src/features/wallets/screening/{deposits,follow-taint,holds,long-traces,on-hold,screening,taint-model}.test.ts',
  'packages/server/src/files/{contract,disk,marks,s3-memory,s3-reading}.test.ts',
  'packages/server/src/partners/routing/mutated-{calls,orders}.test.ts',
  'packages/server/src/partners/screening/{read-list,refresh}.test.ts',
  'packages/server/src/platform/http/{admission,turned-away,unread,write-stream}.test.ts',
  'packages/server/src/platform/db/{migrate,partitions,pool}.test.ts',
  'packages/server/src/platform/{address-ranges,guarded-fetch,work/work}.test.ts',
]

const everything = ['bench/*.test.ts', 'packages/*/src/**/*.test.ts', 'packages/*/test/**/*.test.ts']

const quickFiles = globSync(quick, { cwd: import.meta.dirname, exclude: [...ownProcess, ...slowBesideQuick] })

/** Slow files run first and quick ones last, so that the workers end together. */
const order = ['slow', 'tsx', 'process', 'quick']

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((one, other) => placeOf(one) - placeOf(other))
  }

  /** Every machine must put the files into the same order, so that it depends on nothing but their names. */
  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { shard } = this.ctx.config
    if (shard === undefined) return files
    const named = [...files].sort((one, other) => (one.moduleId < other.moduleId ? -1 : 1))
    return dealt(
      named.sort((one, other) => placeOf(one) - placeOf(other)),
      shard,
    )
  }
}

function placeOf({ moduleId, project }: TestSpecification): number {
  const found = longest.findIndex((file) => moduleId.endsWith(file))
  return found === -1 ? longest.length + order.indexOf(project.name) : found
}

function project(name: string, test: TestProjectInlineConfiguration['test']): TestProjectInlineConfiguration {
  return { extends: true, test: { ...test, name } }
}

export default defineConfig({
  test: {
    globalSetup: ['packages/server/test/global-setup.ts'],
    setupFiles: ['packages/server/test/growing-polls.ts'],
    pool: 'forks',
    // Node loads the modules itself, so that nothing transforms them. This is the code that an operator runs, too.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Compiled code is kept for the other workers, for the programs that tests start, and for the next run.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/purser-compiled') },
    // Space for young objects: a worker that boots servers and loads code allocates much, and collecting it is dear.
    execArgv: ['--max-semi-space-size=64', '--min-semi-space-size=64'],
    // More than the two cores of CI: a test waits for its server, its chain or its database two thirds of the time.
    maxWorkers: 5,
    sequence: { sequencer: LongestFirst },
    testTimeout: 240_000,
    hookTimeout: 240_000,
    retry: 0,
    // Polls test that something happens, not how soon. Vitest's default of one second is short when five workers share two cores.
    expect: { poll: { timeout: 60_000 } },
    reporters: ['default', closingLine],
    // Files of one project share the processes that run them, and so all code is loaded once and not once for each file.
    projects: [
      project('process', { include: ownProcess, isolate: true }),
      project('quick', { include: quickFiles, isolate: false }),
      project('tsx', { include: tsx, isolate: false, experimental: { viteModuleRunner: true } }),
      project('slow', { include: everything, exclude: [...ownProcess, ...tsx, ...quickFiles], isolate: false }),
    ],
  },
})
