import type { Address, Keccak, Recover } from '@purser/protocol'
import type { MppSecrets } from '../../custody/index.ts'
import type { WalletDirectory } from '../wallets/index.ts'
import type { PublicRoutes } from './facilitator/discovery.ts'
import type { Candidate } from './record.ts'
import type { Settlements } from './settle.ts'
import type { Sponsorship } from './tempo/sponsor.ts'

/** Mints and checks the token that proves that a caller of settle is the one that verified. */
export interface SettlementTokens {
  mint(paymentId: string): string
  check(paymentId: string, token: string): boolean
}

declare module '../../platform/ctx.ts' {
  interface Ports {
    readonly receivingWallets: WalletDirectory
    readonly recordPayment: (candidate: Candidate) => Promise<void>
    readonly settlements: Settlements
    readonly settlementTokens: SettlementTokens
    readonly mppSecrets: MppSecrets
    readonly signatures: { readonly recover: Recover; readonly keccak: Keccak }
    /** Factories whose account deployments are allowed (EIP-6492); lower case. */
    readonly eip6492Factories: ReadonlySet<string>
    readonly settleWaitMs: number
    /** The account that pays payers' fees on Tempo; undefined if the operator does not sponsor fees. */
    readonly feeSponsor: Sponsorship | undefined
    /** Most milliseconds that the facilitator's settle waits for the outcome. */
    readonly facilitatorWaitMs: number
    /** The account that sends settlements, on every network. */
    readonly settlerAddress: Address
    /** Smallest amount that is settled on chain, in millionths of a US dollar. */
    readonly settleMicroUsdMin: bigint
    /** The routes that organizations have made public, which the facilitator's discovery lists too. */
    readonly publicRoutes?: PublicRoutes
    /** Most challenges per minute for one caller of a tenant's route, where the tenant identifies the caller. */
    readonly challengesPerCallerMax: number
  }
}
