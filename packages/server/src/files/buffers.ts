/**
 * Memory for the buffers of all files of a process that are read, or all that are written. Whoever reads or sends slowly keeps its buffers: with
 * large ones for each, some thousand transfers of one tenant would take the memory of the process.
 */
export interface BufferBudget {
  /** Reserves memory; returns what releases it, once, and undefined if there is too little: the transfer then has small buffers. */
  take(bytes: number): (() => void) | undefined
}

/** The memory for large buffers. Small ones are not counted: a connection itself takes as much. */
const budgetBytes = 64 * 2 ** 20

/** Bytes of a buffer beyond the budget. */
export const smallBufferBytes = 16 * 1024

export function createBufferBudget(bytesMax: number = budgetBytes): BufferBudget {
  let taken = 0
  return {
    take(bytes) {
      if (taken + bytes > bytesMax) return undefined
      taken += bytes
      let isReleased = false
      return () => {
        if (isReleased) return
        isReleased = true
        taken -= bytes
      }
    },
  }
}
