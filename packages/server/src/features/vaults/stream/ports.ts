import type { VaultStreams } from './streams.ts'

declare module '../../../platform/ctx.ts' {
  interface Ports {
    /** The event streams that this process has open. */
    readonly vaultStreams: VaultStreams
  }
}
