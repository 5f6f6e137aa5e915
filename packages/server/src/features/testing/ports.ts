import type { Address } from '@purser/protocol'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** The account that sends test money, only on test networks; undefined if the operator has set none. */
    readonly faucet: { readonly address: Address } | undefined
  }
}
