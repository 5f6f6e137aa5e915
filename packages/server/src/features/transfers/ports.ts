declare module '../../platform/ctx.ts' {
  interface Ports {
    /** How long a transfer waits for its block before it is answered as pending. */
    readonly transferWaitMs: number
  }
}
