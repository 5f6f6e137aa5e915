import type { Recount } from './recount.ts'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** How each room counts what it holds; a kind that is not here is left as its counter stands. */
    readonly recounts: readonly Recount[]
  }
}
