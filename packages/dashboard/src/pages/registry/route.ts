import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { readRoutesSearch } from './search.ts'

export const registryRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/routes',
    validateSearch: readRoutesSearch,
    component: lazyRouteComponent(() => import('./routes-page.tsx'), 'RoutesPage'),
  }),
] as const
