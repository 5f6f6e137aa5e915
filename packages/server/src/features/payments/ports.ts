import type { Address, Keccak, Recover } from '@purser/protocol'
import type { MppSecrets } from '../../custody/index.ts'
import type { WalletDirectory } from '../wallets/index.ts'
import type { PublicRoutes } from './facilitator/discovery.ts'
import type { Candidate } from './record.ts'
import type { Settlements } from './settle.ts'
import type { Sponsorship } from './tempo/sponsor.ts'

/** Mints and checks the proof that a caller of settle is the one that verified. */
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
    /** Factories whose account deployments are settled (EIP-6492); lower case. */
    readonly eip6492Factories: ReadonlySet<string>
    readonly settleWaitMs: number
    /** Who pays payers' fees on Tempo; none where the operator does not sponsor. */
    readonly feeSponsor: Sponsorship | undefined
    /** Longest that the facilitator's settle waits for the outcome. */
    readonly facilitatorWaitMs: number
    /** The account that sends settlements, on every network. */
    readonly settlerAddress: Address
    /** Smallest amount that is settled on chain, in millionths of a US dollar. */
    readonly settleMicroUsdMin: bigint
    /** What organisations have made public of their own accord, for the facilitator's discovery to list as well. */
    readonly publicRoutes?: PublicRoutes
    /** How many challenges one caller of a customer's is given in a minute, where the customer says who it is. */
    readonly challengesPerCallerMax: number
  }
}
