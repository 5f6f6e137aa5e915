import { once } from 'node:events'
import '../../src/boot.ts'

/** The service, which starts on the message of a test: all its code is loaded, then the process waits. */
await once(process, 'message')
process.channel?.unref()
process.disconnect?.()
await import('../../src/main.ts')
