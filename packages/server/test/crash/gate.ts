import { once } from 'node:events'
import '../../src/boot.ts'

/** Loaded before main.ts (`node --import`): all code is loaded, then the process waits for the test's message. */
await once(process, 'message')
process.channel?.unref()
process.disconnect?.()
