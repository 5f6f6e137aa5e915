import type { ServerResponse } from 'node:http'
import type { Pour } from '../pour.ts'

/**
 * Pours a content into a response whose head is written, as fast as the caller takes it, and ends it. Never rejects: where the
 * caller goes away the rest is not read, and where the content breaks off the connection is cut, so that nobody takes a part for
 * the whole, and `tell` is given the fault.
 */
export async function pourInto(response: ServerResponse, content: Pour, tell: (fault: unknown) => void): Promise<void> {
  let isGone = false
  let release = (): void => undefined
  const leave = (): void => {
    isGone = true
    release()
  }
  // A response that fails is closed too; without a listener the failure would end the process.
  response.on('error', leave).once('close', leave)
  const take = async (bytes: Uint8Array): Promise<void> => {
    if (isGone || response.destroyed) throw gone
    await new Promise<void>((resolve) => {
      // The library does not always answer a write on a connection that was cut meanwhile: `close` then does.
      release = resolve
      response.write(bytes, () => resolve())
    })
    if (isGone) throw gone
  }
  try {
    await content.pour(take)
    response.end()
  } catch (fault) {
    if (fault !== gone) tell(fault)
    response.destroy()
  }
}

const gone = new Error('the caller went away')
