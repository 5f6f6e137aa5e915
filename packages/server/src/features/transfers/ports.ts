declare module '../../platform/ctx.ts' {
  interface Ports {
    /** How long a transfer waits for its block before the response is `pending`. */
    readonly transferWaitMs: number
  }
}
