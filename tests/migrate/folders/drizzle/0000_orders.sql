CREATE TABLE `orders` (`id` integer PRIMARY KEY);
--> statement-breakpoint
CREATE TABLE `parts` (`id` integer);
