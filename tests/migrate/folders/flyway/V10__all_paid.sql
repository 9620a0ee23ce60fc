UPDATE orders SET paid = 'yes';
