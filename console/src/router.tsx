import { createHashHistory, createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { NotFound } from './pages/notfound'
import { Overview } from './pages/overview'
import { PlacePage } from './pages/place'
import { Shell } from './shell'

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound })
const at = { getParentRoute: () => root }

const routes = [
  createRoute({ ...at, path: '/', component: Overview }),
  createRoute({ ...at, path: '/route', component: lazyRouteComponent(() => import('./pages/routes'), 'RoutesPage') }),
  createRoute({ ...at, path: '/envoys', component: lazyRouteComponent(() => import('./pages/envoys'), 'EnvoysPage') }),
  createRoute({ ...at, path: '/events', component: lazyRouteComponent(() => import('./pages/events'), 'EventsPage') }),
  createRoute({ ...at, path: '/history', component: lazyRouteComponent(() => import('./pages/history'), 'HistoryPage') }),
  createRoute({ ...at, path: '/history/$revision', component: lazyRouteComponent(() => import('./pages/history'), 'RevisionPage') }),
  createRoute({ ...at, path: '/explain', component: lazyRouteComponent(() => import('./pages/explain'), 'ExplainPage') }),
  createRoute({ ...at, path: '/map', component: lazyRouteComponent(() => import('./pages/map'), 'MapPage') }),
  createRoute({ ...at, path: '/limits', component: lazyRouteComponent(() => import('./pages/limits'), 'LimitsPage') }),
  createRoute({ ...at, path: '/document', component: lazyRouteComponent(() => import('./pages/document'), 'DocumentPage') }),
  createRoute({ ...at, path: '/start', component: lazyRouteComponent(() => import('./pages/start'), 'StartPage') }),
  createRoute({ ...at, path: '/$', component: PlacePage }),
]

// Places are behind the # of the address, so that one page serves them all, below any path. Those of objects are the
// paths of the API.
export const router = createRouter({
  routeTree: root.addChildren(routes),
  history: createHashHistory(),
  defaultPreload: false,
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
