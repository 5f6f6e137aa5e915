/** `unchecked` while no node has answered. */
export type TokenDomainState = 'unchecked' | 'right' | 'wrong'

/** The number of a network's nodes, in total and by state. */
export interface ChainHealth {
  /** `unknown` until a node has answered or failed. */
  readonly status: 'unknown' | 'up' | 'down'
  readonly nodes: number
  readonly up: number
  /** How many nodes must agree before their answer decides about money. */
  readonly needed: number
  /** `waits` while fewer nodes are up than are needed; `alone` when a single node decides about real money. */
  readonly money: 'moves' | 'waits' | 'alone'
  /** Nodes that answer but whose heads are behind the others'. */
  readonly behind: number
  readonly resting: number
  /** Nodes that report a different chain ID than configured. */
  readonly refused: number
  /** Symbols of tokens whose contracts do not match the registry. */
  readonly wrongTokens: readonly string[]
}
