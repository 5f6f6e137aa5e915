import { expireSignedBytes } from './archive/signed-bytes.ts'
import { compareLanes, fillHandler } from './chain/index.ts'
import type { Config } from './config.ts'
import { type Overrides, openPorts } from './deps.ts'
import { createAccount } from './features/account/index.ts'
import { createApprovals } from './features/approvals/index.ts'
import { createBilling } from './features/billing/index.ts'
import { createChainNames } from './features/chains/index.ts'
import { createFunds } from './features/funds/index.ts'
import { createOrganisations, type OrganisationDeps } from './features/organisations/index.ts'
import {
  createPayments,
  isCustomerPayment,
  type PaymentDeps,
  paymentLogExists,
  paymentRecount,
  paymentsOfLogs,
  sealReceipt,
} from './features/payments/index.ts'
import { createPeopleOperations, listEndedSessions } from './features/people/index.ts'
import { createRegistry, publicRoutes, type RegistryDeps } from './features/registry/index.ts'
import { createRelayer } from './features/relayer/index.ts'
import { createRequests } from './features/requests/index.ts'
import { createSessions } from './features/sessions/index.ts'
import { createTesting, type TestingDeps } from './features/testing/index.ts'
import { createTransfers } from './features/transfers/index.ts'
import { createVaults, listEndedTokens, type VaultDeps, vaultRecounts } from './features/vaults/index.ts'
import { areLiveDepositsOnHold, createWallets, walletRecounts } from './features/wallets/index.ts'
import { createWebhooks, type WebhookDeps, webhookRecount } from './features/webhooks/index.ts'
import { createWithdrawals, type WithdrawalDeps } from './features/withdrawals/index.ts'
import type { Call, Deps as PlatformDeps } from './platform/ctx.ts'
import { dropEmptyPartitions, keepPartitions, startOfMonth } from './platform/db/partitions.ts'
import { deleteExpiredIdempotencyKeys } from './platform/http/idempotency.ts'
import { deleteExpiredUse } from './platform/http/kept-bytes.ts'
import { endedReaders } from './platform/reader.ts'
import type { RecurringTask } from './platform/recurring-task.ts'
import { createSignal } from './platform/signal.ts'
import { bindTasks } from './platform/work/runner.ts'

/** Dependencies of all features together, for what works beside them: tests and operator commands. */
export interface Deps
  extends OrganisationDeps,
    PaymentDeps,
    RegistryDeps,
    TestingDeps,
    VaultDeps,
    WebhookDeps,
    WithdrawalDeps {}

/** Context of a call with the dependencies of all features. */
export interface Ctx extends Deps, Call {}

/** Used if the configuration sets no lease. */
const leaseMsDefault = 6_000

/** Deletes responses stored for Idempotency-Keys after a day. Idempotent. */
const deleteExpiredIdempotency: RecurringTask<PlatformDeps> = {
  name: 'platform.sweep-idempotency-keys',
  everyMs: 600_000,
  run: async (ctx) => {
    await deleteExpiredIdempotencyKeys(ctx, ctx.clock.now())
    await deleteExpiredUse(ctx, ctx.clock.now())
  },
}

/**
 * Makes the partitions of the coming months, and drops those that the sweeps have emptied. A run beside another fails without a change, and the next
 * one finds nothing left.
 */
const keepMonths: RecurringTask<PlatformDeps> = {
  name: 'platform.keep-partitions',
  everyMs: 3_600_000,
  run: async ({ db, clock, log }) => {
    const now = clock.now()
    const made = await keepPartitions(db, now)
    const dropped = await dropEmptyPartitions(db, startOfMonth(now))
    if (made.length + dropped.length > 0) log.info({ made, dropped }, 'partitions of months were made or dropped')
  },
}

/** Opens the ports, and builds the features on them. If a feature fails to be built, what was opened is closed. */
export async function createModules(config: Config, overrides: Overrides = {}) {
  const closing = new AsyncDisposableStack()
  const opened = await openPorts(config, overrides)
  closing.defer(() => opened.close())
  try {
    return buildFeatures(config, overrides, { opened, closing })
  } catch (error) {
    // The error that began this is thrown.
    await opened.stopChains().catch(() => undefined)
    await closing.disposeAsync().catch(() => undefined)
    throw error
  }
}

interface Opening {
  readonly opened: Awaited<ReturnType<typeof openPorts>>
  /** Gets what stops each feature, in reverse order. */
  readonly closing: AsyncDisposableStack
}

/**
 * Builds the features in order: each gets what it needs, and nothing is changed afterwards. The lists of operations, loops and handlers
 * are what the features return.
 */
function buildFeatures(config: Config, overrides: Overrides, { opened, closing }: Opening) {
  const [committed, due] = [createSignal(), createSignal()]
  const settlementsWanted = createSignal()
  const leaseMs = config.leaseMs ?? leaseMsDefault
  const base = {
    ...opened.ports,
    eventsCommitted: ({ haveSubscribers }: { readonly haveSubscribers: boolean }) => {
      committed.raise()
      if (haveSubscribers) due.raise()
    },
    recounts: [paymentRecount, ...walletRecounts, webhookRecount, ...vaultRecounts],
    settleNanoUsdPerDayMax: config.settleNanoUsdPerDayMax,
    settleMicroUsdMin: config.settleMicroUsdMin,
  }
  const { db, clock } = base
  const organisations = createOrganisations(base)
  const { keys } = organisations.api
  closing.defer(() => keys.stop())
  const ended = endedReaders({
    keys: keys.endedKeys,
    tokens: (ids) => listEndedTokens(db, ids, clock.now()),
    sessions: (sessions) => listEndedSessions(db, sessions, clock.now()),
  })
  const wallets = createWallets(base, base.signatures)
  const funds = createFunds(wallets.deps)
  const approvals = createApprovals(wallets.deps)
  const transfers = createTransfers({
    ...wallets.deps,
    transferWaitMs: config.transferWaitMs,
    sellerFetch: base.sellerFetch,
    reserveResponse: base.reserveResponse,
    isCustomerPayment,
  })
  const payments = createPayments(
    {
      ...transfers.deps,
      ...base,
      publicRoutes,
      eip6492Factories: new Set(config.eip6492Factories.map((factory) => factory.toLowerCase())),
      settleWaitMs: config.settleWaitMs,
      facilitatorWaitMs: config.facilitatorWaitMs,
      challengesPerCallerMax: config.challengesPerCallerMax,
    },
    {
      verifiedMsMax: config.verifiedSecondsMax * 1_000,
      onSettlementWanted: settlementsWanted.raise,
      releasedPerDayMin: overrides.releasedPerDayMin,
    },
  )
  closing.defer(() => payments.stop())
  const testing = createTesting({ ...payments.deps, hasTestClock: config.testClock, faucet: base.faucet })
  const withdrawals = createWithdrawals({ ...transfers.deps, ...base })
  const vaults = createVaults({
    ...base,
    endedReaders: ended,
    receiptForSeal: sealReceipt,
    vaultTokensMax: config.vaultTokensMax,
    ...(config.vaultTtls !== undefined && { vaultTtls: config.vaultTtls }),
  })
  closing.defer(() => vaults.stop())
  const sessions = createSessions({ ...payments.deps, ...vaults.deps })
  const webhooks = createWebhooks(
    { ...base, endedReaders: ended, eventsKeptDays: config.eventsKeptDays },
    { committed, due },
  )
  closing.defer(() => webhooks.stop())
  const registry = createRegistry({ ...base, paymentLogExists, paymentsOfLogs })
  const relayer = createRelayer(wallets.deps, {
    purposes: [...payments.relays, ...wallets.relays, ...transfers.relays],
    leaseMs,
    wanted: settlementsWanted,
  })
  const people = createPeopleOperations(base)
  const requests = createRequests(base)
  const others = [createAccount(base), createBilling(base), createChainNames(base), registry, testing]
  const withLoops = [
    funds,
    payments,
    sessions,
    people,
    vaults,
    webhooks,
    requests,
    approvals,
    withdrawals,
    wallets,
    transfers,
  ]
  const serving = [
    organisations,
    approvals,
    transfers,
    payments,
    wallets,
    withdrawals,
    vaults,
    sessions,
    webhooks,
    people,
  ]
  const deps: Deps = {
    ...testing.deps,
    ...withdrawals.deps,
    ...vaults.deps,
    ...webhooks.deps,
    ...registry.deps,
    isSignUpOpen: base.isSignUpOpen,
    lookUpKey: () => keys.findKey(new Uint8Array(32)),
    readinessDetails: async () => {
      const details = await opened.readinessDetails()
      const liveDeposits = (await areLiveDepositsOnHold({ db, clock })) ? 'on-hold' : 'free'
      return { ...details, screening: { ...details.screening, liveDeposits } }
    },
  }
  // First: what stops next waits for no node.
  closing.defer(() => opened.stopChains())
  return {
    deps,
    leaseMs,
    operations: [...serving, ...others, requests].flatMap(({ operations }) => operations),
    loops: [
      ...bindTasks(base, [deleteExpiredIdempotency, expireSignedBytes, keepMonths, compareLanes]),
      ...withLoops.flatMap(({ loops }) => loops),
    ],
    laneHandlers: [fillHandler, ...[relayer, transfers, wallets, testing].flatMap(({ laneHandlers }) => laneHandlers)],
    pages: [...withdrawals.pages, ...registry.pages],
    findKey: keys.findKey,
    relayer,
    webhooks,
    opened,
    close: () => closing.disposeAsync(),
  }
}
