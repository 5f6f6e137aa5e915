export { refreshList } from './refresh.ts'
export { ListRefused } from './sanctions-list.ts'
export { sandboxFlaggedAddress, sandboxPendingAddress } from './sandbox.ts'
export { openScreening } from './screening.ts'
