import type { Address } from '@purser/protocol'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** The account that gives test money away, on test networks alone; undefined where the operator has set none. */
    readonly faucet: { readonly address: Address } | undefined
  }
}
