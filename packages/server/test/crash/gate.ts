import { once } from 'node:events'
import '../../src/boot.ts'

/** Read before main.ts (`node --import`): all code is loaded, then the process waits until its test says go. */
await once(process, 'message')
process.channel?.unref()
process.disconnect?.()
