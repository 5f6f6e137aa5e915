/** The open end of an answer that is told bit by bit. Every call on one that is closed does nothing. */
export interface Line {
  /** Bytes that were written and that the caller has not taken yet; what the operating system holds is not counted. */
  readonly waiting: number
  readonly isOpen: boolean
  /** Writes at once, whatever waits: whoever writes watches `waiting`, or a caller that does not read fills the memory. */
  write(bytes: Uint8Array): void
  /** Resolves when the caller has taken what waits, or the line is closed. */
  drained(): Promise<void>
  /** Ends the answer after what was written; a caller that does not take that within half a minute is cut. */
  end(): void
  /** Breaks the answer off; what waits is forgotten. */
  cut(): void
}

/**
 * The body of an answer that goes on for as long as both sides stay: `open` is given the line once the headers are sent,
 * `closed` is called once, whoever ended it. Ten thousand of them cost far less than ten thousand node streams, and the
 * server ends all of them when it stops.
 */
export class Live {
  readonly open: (line: Line) => void
  readonly closed: () => void

  constructor(open: (line: Line) => void, closed: () => void) {
    this.open = open
    this.closed = closed
  }
}
