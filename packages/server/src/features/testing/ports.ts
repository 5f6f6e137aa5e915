import type { WalletSigner } from '../../custody/index.ts'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** Whether organisations may advance their test environment in time. */
    readonly hasTestClock: boolean
    /** The account that sends test money, only on test networks; undefined if the operator has set none. */
    readonly faucet: Pick<WalletSigner, 'address' | 'signTransferWithAuthorization'> | undefined
  }
}
