import type { Keccak, Recover } from '@purser/protocol'
import type { FeeSponsor } from '../../chain/port.ts'
import type { DomainSeparators } from '../../chain/signatures/domain-separators.ts'
import type { MppSecrets } from '../../custody/index.ts'
import type { ServiceSealPort } from '../../custody/service-seal.ts'
import type { Call, Environment, Deps as PlatformDeps, Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { ByOwner } from '../../platform/work/by-owner.ts'
import type { DueCursors, Plan } from '../plans/index.ts'
import type { TransferDeps } from '../transfers/index.ts'
import type { SettlementOutcome } from './settlement-store.ts'
import type { NewPayment, PaymentRow } from './store.ts'

/** Mints and checks the token that proves that a caller of settle is the one that verified. */
export interface SettlementTokens {
  mint(paymentId: string): string
  check(paymentId: string, token: string): boolean
}

/** A paid route that its organisation has made public, with the fields to list. */
export interface PublicRoute {
  readonly url: string
  readonly lastSeenAt: Date
  readonly details: Readonly<Record<string, unknown>>
}

/** Returns a page of the routes that organisations have made public in an environment, and their number, at most `countedMax`. */
export type PublicRoutes = (
  db: Queryable,
  environment: Environment,
  page: { readonly limit: number; readonly offset: number; readonly countedMax: number },
) => Promise<{ readonly routes: readonly PublicRoute[]; readonly total: number }>

/** The account that pays fees for payers on Tempo. */
export interface Sponsorship {
  readonly signer: FeeSponsor
}

/** A payer's funds as the chain reports them. */
export interface Funds {
  readonly rawBalance: bigint
  /** Open payments whose money had already left the payer when the balance was read. */
  readonly spentIds: readonly string[]
}

/** Values that a process has read from chains, so that requests do not read it again. All of it can be read anew. */
export interface ChainMemory {
  /** Tokens whose EIP-712 domain was compared with the registry's, as `<CAIP-2>/<address>`. */
  readonly checkedDomains: Set<string>
  /** Names of the networks on which the proxy of scheme `upto` has code. */
  readonly uptoNetworks: Set<string>
  /** Whether the sponsor can pay fees, by network, and until which time in ms that holds. */
  readonly sponsorFunds: Map<string, { readonly enough: Promise<boolean>; readonly until: number }>
  /** Payers' funds in the newest block of each network, by token and payer, and until which time in ms they are cached. */
  readonly payerFunds: Map<
    string,
    { readonly block: bigint; readonly funds: Map<string, Promise<Funds>>; readonly until: number }
  >
}

/** State that a process keeps between two checks of unsettled payments. */
export interface UnsettledChecks {
  /** The starts of the next look-ups of due payments, by network, and of due refunds. */
  readonly cursors: DueCursors
  /** Limits the searches for the transactions of used authorizations. */
  readonly search: ByOwner
}

/**
 * Limits how many verified payments may be released. A released payment no longer counts in the month, but its rows stay, so the monthly quota
 * alone would not limit them. A day's allowance is available at once, and refills evenly over a day.
 */
export interface ReleaseLimit {
  /** Seconds until the owner has any of its allowance again; undefined while some is left. */
  waitOf(caller: Pick<Call, 'tenant' | 'shareOwner'>): number | undefined
  /** Seconds until the payer has any of its part of the allowance again; undefined while some is left. */
  waitOfPayer(caller: Pick<Call, 'tenant' | 'shareOwner'>, payer: string): number | undefined
  /** Counts a payment that was released. */
  count(caller: Pick<Call, 'tenant' | 'shareOwner'>, plan: Plan, payer: string | null): void
}

export interface Candidate {
  readonly ctx: Ctx
  readonly payment: NewPayment
  /** The payer's funds as verifying just read them; omitted for a payment that needs no funds check. */
  readonly funds?: Funds
}

/**
 * Requests settlements and reports their outcomes. All requests of a process share it, so that waiting costs one query per poll.
 */
export interface Settlements {
  /** Returns a tenant's payment; undefined if the tenant does not have it. Concurrent callers share a statement. */
  payment(tenant: Tenant, paymentId: PaymentId): Promise<PaymentRow | undefined>
  /** Durable: once this returns, the relayer completes the settlement, even if this process dies. */
  request(paymentId: PaymentId): Promise<void>
  outcome(paymentId: PaymentId, waitMs: number): Promise<SettlementOutcome>
}

/** Counts the events before a payment: challenges issued and credentials refused. */
export interface AttemptCounts {
  /** Adds to the present minute; never throws and waits for nothing. */
  add(tenant: Tenant, added: { readonly challenges: number } | { readonly refused: number }): void
  /** Writes the counts that are not written yet. */
  stop(): Promise<void>
}

/** Dependencies of the feature payments. */
export interface Deps extends PlatformDeps, TransferDeps, ServiceSealPort {
  readonly recordPayment: (candidate: Candidate) => Promise<void>
  readonly chainMemory: ChainMemory
  readonly unsettledChecks: UnsettledChecks
  readonly releaseLimit: ReleaseLimit
  readonly settlements: Settlements
  readonly settlementTokens: SettlementTokens
  readonly mppSecrets: MppSecrets
  readonly signatures: {
    readonly recover: Recover
    readonly keccak: Keccak
    readonly domainSeparators: DomainSeparators
  }
  /** Factories whose account deployments are allowed (EIP-6492); lower case. */
  readonly eip6492Factories: ReadonlySet<string>
  readonly settleWaitMs: number
  /** The account that pays payers' fees on Tempo; undefined if the operator does not sponsor fees. */
  readonly feeSponsor: Sponsorship | undefined
  /** Most milliseconds that the facilitator's settle waits for the outcome. */
  readonly facilitatorWaitMs: number
  /** The routes that organisations have made public, which the facilitator's discovery lists too. */
  readonly publicRoutes?: PublicRoutes
  /** Most challenges per minute for one caller of a tenant's route, where the tenant identifies the caller. */
  readonly challengesPerCallerMax: number
  readonly attemptCounts: AttemptCounts
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
