/** `unchecked` while no node has answered. */
export type TokenDomainState = 'unchecked' | 'right' | 'wrong'

/** How many nodes a network has, and how many of them are how. */
export interface ChainHealth {
  /** `unknown` until a node was asked. */
  readonly status: 'unknown' | 'up' | 'down'
  readonly nodes: number
  readonly up: number
  /** How many of them must say the same before money moves by what they say. */
  readonly needed: number
  /** `waits` while fewer are up than are needed; `alone` where one node decides about real money. */
  readonly money: 'moves' | 'waits' | 'alone'
  /** They answer, and their heads are behind those of the others. */
  readonly behind: number
  readonly resting: number
  /** Of another chain than they stand for. */
  readonly refused: number
  /** Symbols of tokens that are not what the registry says. */
  readonly wrongTokens: readonly string[]
}
