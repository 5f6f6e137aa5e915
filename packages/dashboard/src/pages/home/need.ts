import type { ReactNode } from 'react'

/** Something that waits for the reader of Home. */
export interface Need {
  readonly key: string
  readonly icon: ReactNode
  readonly text: string
  /** The page where it is done. */
  readonly to?: string
  readonly search?: Readonly<Record<string, string>>
  /** The list that the text sums up. */
  readonly details?: ReactNode
}
