import { memoryBudgets } from '../platform/memory-budgets.ts'

/**
 * The memory for large buffers of all downloads, or of all uploads, of a process. A slow caller keeps its buffers for long: with large buffers for
 * each, some thousand transfers of one tenant would exhaust the memory of the process.
 */
export interface BufferBudget {
  /**
   * Reserves memory and returns the function that releases it, to be called once. Undefined if there is too little; the transfer then uses small
   * buffers.
   */
  take(bytes: number): (() => void) | undefined
}

/** The memory for large buffers. Small ones are not counted: a connection itself takes as much. */
const budgetBytes = memoryBudgets.fileBuffers

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
